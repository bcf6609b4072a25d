/* Huge pages where no page fault brings them, and settings that change beside the program. */
#include "worker.h"

#include <sys/mman.h>

static const size_t block = 64 * MIB;

static char *touched(size_t stride)
{
    char *p = calloc(1, block);

    CHECK(p != NULL);
    for (size_t at = 0; at < block; at += stride) {
        p[at] = (char)(at / stride);
    }
    return p;
}

/* Wholly in memory: it becomes huge, all but the edges, keeps what it holds, and holds no more. */
MODE(full_becomes_huge)
{
    char *p = written(block, 7);
    size_t before = rss_mib();
    FL_AWAIT(huge_kib() >= 56 * KIB);
    CHECK(is_stamped(p, block, 7));
    CHECK(rss_mib() <= before + 4);
    free(p);
}

/* Of this one half is missing; of that one, which comes after it, nothing: it becomes huge, the
 * first does not. */
MODE(half_stays_as_it_is)
{
    char *half = touched(2 * (size_t)sysconf(_SC_PAGESIZE));
    size_t before = rss_mib();

    full_becomes_huge();
    CHECK(huge_kib() <= block / KIB);
    for (size_t at = 0; at < block; at += 8 * KIB) {
        CHECK(half[at] == (char)(at / (8 * KIB)));
    }
    free(half);
    CHECK(rss_mib() <= before + block / MIB + 4);
}

MODE(nothing_becomes_huge)
{
    char *p = touched(KIB);

    nap(500);
    CHECK(huge_kib() == 0);
    free(p);
}

/* As an administrator does; the parent puts it back. */
static void set(const char *mode)
{
    int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0 && write(fd, mode, strlen(mode)) == (ssize_t)strlen(mode));
    close(fd);
}

static char *zeroed(size_t len)
{
    char *p = calloc(1, len);

    CHECK(p != NULL && p[0] == 0 && p[len / 2] == 0 && p[len - 1] == 0);
    return p;
}

/* Blocks that are taken, grown, shrunk and freed keep what they hold under all of them. */
MODE(settings_change)
{
    enum { BLOCKS = 24, TURNS = 600 };
    static const char *const setting[] = {"never", "always", "madvise"};
    static struct {
        char *p;
        size_t len;
    } b[BLOCKS];
    uint64_t state = 88172645463325252u;

    for (unsigned i = 0; i < (unsigned)at_most(TURNS); i++) {
        unsigned k = (unsigned)(next_random(&state) % BLOCKS);
        size_t len = 64 * KIB + next_random(&state) % (8 * MIB);
        if (i % 20 == 0) {
            set(setting[i / 20 % 3]);
        }
        CHECK(b[k].p == NULL || is_stamped(b[k].p, b[k].len, k));
        if (i % 3 == 0) {
            free(b[k].p);
            b[k].p = zeroed(len);
        } else {
            b[k].p = realloc(b[k].p, len);
        }
        CHECK(b[k].p != NULL);
        stamp(b[k].p, len, k);
        b[k].len = len;
    }
    for (unsigned k = 0; k < BLOCKS; k++) {
        free(b[k].p);
    }
}

/* In huge pages: of a block of malloc's, and of memory that the program maps itself. */
static void say_whose(const char *who)
{
    char *p = filled(block);
    size_t of_malloc = huge_kib();
    char *own = mmap(NULL, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(own != MAP_FAILED);
    memset(own, 1, block);
    dprintf(1, "%s: malloc %zu own %zu\n", who, of_malloc, huge_kib() - of_malloc);
    CHECK(munmap(own, block) == 0);
    free(p);
}

/* And in a process that it starts, which has no library. */
MODE(whose_pages_are_huge)
{
    char path[4096], mode[] = "child", *args[] = {path, mode, NULL};
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    CHECK(n > 0);
    path[n] = '\0';
    say_whose("here");
    pid_t child = fork();
    if (child == 0) {
        CHECK(unsetenv("LD_PRELOAD") == 0);
        execv(path, args);
        _exit(1);
    }
    ends_well(child);
}

MODE_IS(child, say_whose("child"))

MAIN()
