/* What faultless tells of memory is what the kernel has: fl_residency_read against the sum of Rss
 * in /proc/self/smaps of the maps that bear its name, or, where the kernel gives no names, that lie
 * where no other process has any. */
#include "api.h"
#include "await.h"

#include <stdbool.h>
#include <sys/mman.h>

#define TIB ((uint64_t)1 << 40)

static char text[MIB]; /* not malloc's: it would be counted */

static void read_smaps(void)
{
    size_t n = 0;
    int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);

    for (ssize_t got = fd >= 0 ? 1 : 0; got > 0 && n + 1 < sizeof text;) {
        got = read(fd, text + n, sizeof text - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    CHECK(n + 1 < sizeof text);
    text[n] = '\0';
}

static bool is_head_of_map(const char *line)
{
    return (*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f');
}

/* Between brk heaps below and the kernel's own choices above; the window is there unless it is
 * reserved. */
static bool is_quiet(const char *line)
{
    uint64_t at = strtoull(line, NULL, 16);

#if defined(__aarch64__)
    return at >= 128 * TIB && at < 144 * TIB;
#else
    return at >= 65 * TIB && at < 79 * TIB;
#endif
}

/* Bytes of all maps whose names begin so; of those at such addresses where `name` is NULL.
 * SIZE_MAX: there are none. */
static size_t rss_of(const char *name)
{
    size_t sum = 0;
    bool any = false, inside = false;

    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (is_head_of_map(line)) {
            inside = name != NULL ? strstr(line, name) != NULL : is_quiet(line);
            any |= inside;
        } else if (inside && strncmp(line, "Rss:", 4) == 0) {
            sum += strtoull(line + 4, NULL, 10) * KIB;
        }
        *end = '\n';
    }
    return any ? sum : SIZE_MAX;
}

static struct fl_residency ask(void)
{
    struct fl_residency v = {.size = sizeof v};

    CHECK(CALL(fl_residency_read)(&v) == 0);
    return v;
}

static size_t resident(const char *p, size_t len)
{
    static unsigned char there[16 * KIB];
    size_t sum = 0;

    for (size_t at = 0; at < len; at += sizeof there * 4 * KIB) {
        size_t part = len - at < sizeof there * 4 * KIB ? len - at : sizeof there * 4 * KIB;
        CHECK(mincore((void *)(p + at), part, there) == 0);
        for (size_t i = 0; i < part / (4 * KIB); i++) {
            sum += (there[i] & 1) != 0 ? 4 * KIB : 0;
        }
    }
    return sum;
}

static bool agrees(const char *what, size_t rss, size_t told)
{
    if (rss != told && rss != SIZE_MAX) {
        printf("%s: %zu KiB told, %zu KiB in smaps\n", what, told / KIB, rss / KIB);
        return false;
    }
    return true;
}

/* The library's own thread may be at work: until it rests. */
static void check_sum(void)
{
    bool same = false, compared = false;

    while (!same) {
        struct fl_residency v = ask();
        size_t all = v.live_resident_bytes + v.free_resident_bytes + v.stock_resident_bytes +
                     v.table_resident_bytes;
        read_smaps();
        size_t named = rss_of("[anon:faultless:");
        same = agrees("all", named != SIZE_MAX ? named : rss_of(NULL), all) &&
               agrees("the stock", rss_of("[anon:faultless:stock]"), v.stock_resident_bytes);
        compared |= named != SIZE_MAX || rss_of(NULL) != SIZE_MAX;
        CHECK(v.unknown_bytes == 0);
        if (!same) {
            fl_between_looks();
        }
    }
    printf("compared %d\n", compared);
}

/* 512 MiB, of which 2 % are touched. */
MODE(sparse_block)
{
    struct fl_residency before = ask();
    char *p = taken(512 * MIB);
    size_t touched = 512 * MIB / 50;

    memset(p, 1, touched);
    struct fl_residency v = ask();
    CHECK(v.live_bytes >= before.live_bytes + 512 * MIB);
    size_t there = v.live_resident_bytes - before.live_resident_bytes;
    CHECK(there >= touched && there <= touched + 4 * MIB);
    CHECK(there == resident(p, 512 * MIB));
    check_sum();
    printf("live %zu resident %zu\n", (size_t)v.live_bytes / MIB,
           (size_t)v.live_resident_bytes / MIB);
    struct mallinfo2 m = mallinfo2();
    CHECK(m.hblkhd >= 512 * MIB); /* handed out, touched or not */
    free(p);
}

/* Blocks in use, blocks that were freed, and some in thread caches. */
MODE(mixed)
{
    enum { BLOCKS = 64 };
    char *p[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        p[i] = taken(MIB + i * 100 * KIB);
        memset(p[i], 1, i % 3 * 512 * KIB);
    }
    for (size_t i = 0; i < BLOCKS; i += 2) {
        free(p[i]);
    }
    check_sum();
    struct fl_residency v = ask();
    CHECK(v.free_bytes > 20 * MIB && v.live_bytes > 20 * MIB);
    CHECK(v.free_resident_bytes <= v.free_bytes && v.live_resident_bytes <= v.live_bytes);
    malloc_trim(0);
    check_sum();
    CHECK(ask().free_resident_bytes < v.free_resident_bytes);
    for (size_t i = 1; i < BLOCKS; i += 2) {
        free(p[i]);
    }
}

/* As mallinfo(3) says: hblkhd is what is allocated, arena and fordblks have what is free and
 * held. */
MODE(told_by_mallinfo)
{
    free(malloc(100));
    char *p = taken(24 * MIB);
    memset(p, 1, 24 * MIB);
    struct mallinfo2 used = mallinfo2();
    free(p);
    struct mallinfo2 m = mallinfo2();
    CHECK(m.hblkhd + 24 * MIB <= used.hblkhd);
    CHECK(m.hblks + 1 == used.hblks);
    CHECK(m.fordblks >= used.fordblks + 24 * MIB - 64 * KIB);
    CHECK(m.arena == m.uordblks + m.fordblks);
    CHECK(m.arena + m.hblkhd + 64 * KIB >= used.arena + used.hblkhd);
}

MODE(size_counts)
{
    struct fl_residency v = {.size = 8};
    __typeof__(&fl_residency_read) read_residency = CALL(fl_residency_read);

    CHECK(read_residency(NULL) == -EINVAL);
    CHECK(read_residency(&v) == -EINVAL);
    memset(&v, 0xee, sizeof v);
    v.size = 16;
    CHECK(read_residency(&v) == 0);
    CHECK(v.live_bytes != 0xeeeeeeeeeeeeeeee && v.live_resident_bytes == 0xeeeeeeeeeeeeeeee);
    char longer[256]; /* as of a later header */
    memset(longer, 0xee, sizeof longer);
    v.size = sizeof longer;
    memcpy(longer, &v.size, sizeof v.size);
    CHECK(read_residency((struct fl_residency *)(void *)longer) == 0);
    CHECK(longer[sizeof longer - 1] == 0);
    free(taken(MIB));
}

MAIN()
