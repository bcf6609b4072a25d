/* Files into memory: whatever the lengths, offsets and flags, the bytes of the file and no others;
 * and each part is told of once. */
#include "sys/sys.h"
#include "cases.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { LEN = 24 << 20, EDGE = 1 << 20 };

static char path[] = "test_sys_read.XXXXXX";
static unsigned char *memory; /* LEN + 2 * EDGE */

static unsigned char byte_at(uint64_t offset)
{
    return (unsigned char)(offset * 131 ^ offset >> 9);
}

static void make_file(void)
{
    fl_sys_boot();
    memory = mmap(NULL, LEN + 2 * EDGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = mkstemp(path);
    assert_true(memory != MAP_FAILED && fd >= 0);
    for (size_t i = 0; i < LEN; i++) {
        memory[i] = byte_at(i);
    }
    assert_int_equal(write(fd, memory, LEN), LEN);
    close(fd);
}

static void drop_file(void)
{
    assert_int_equal(unlink(path), 0);
}

static size_t told;

static void count(void *arg, struct fl_range part)
{
    const struct fl_read *r = arg;

    assert_true(part.base >= r->to.base && fl_range_end(part) <= fl_range_end(r->to));
    told += part.len;
    for (size_t i = 0; i < part.len; i += 4093) { /* it is there when it is told of */
        uint64_t from = r->offset + (part.base + i - r->to.base);
        assert_int_equal(*(unsigned char *)(part.base + i), byte_at(from));
    }
}

static void reads(int fd, bool ring, uint64_t offset, size_t skip, size_t len)
{
    unsigned char *to = memory + EDGE + skip;
    struct fl_read r = {
        .fd = fd, .offset = offset, .to = {(uintptr_t)to, len}, .ring = ring, .done = count};

    r.arg = &r;
    memset(memory, 0xa5, LEN + 2 * EDGE);
    told = 0;
    int rc = fl_read_file(&r);
    size_t there = offset < LEN ? fl_min(len, LEN - offset) : 0;
    assert_int_equal(rc, there == len ? 0 : -ENODATA);
    for (size_t i = 0; i < there; i++) {
        if (to[i] != byte_at(offset + i)) {
            fail_msg("byte %zu of %zu from %lu", i, len, (unsigned long)offset);
        }
    }
    assert_int_equal(told, rc == 0 ? len : told);
    assert_int_equal(to[-1], 0xa5);
    assert_int_equal(to[len], 0xa5); /* nothing behind, though it was read in blocks */
}

static void in_all_ways(int fd, bool ring)
{
    static const struct {
        uint64_t offset;
        size_t skip, len;
    } table[] = {
        {0, 0, LEN},
        {4096, 0, LEN - 4096},
        {0, 0, 1},
        {4095, 4095, 3},
        {100, 100, 9 << 20},      /* alike, with edges */
        {100, 7, (9 << 20) + 11}, /* not alike */
        {1, 0, LEN - 1},
        {LEN - 5000, 0, 5000},
        {LEN - 4096, 0, 8192}, /* past the end */
        {LEN - (3 << 20), 0, 6 << 20},
        {LEN + 4096, 0, 4096},
        {8192, 8192, 0},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        reads(fd, ring, table[i].offset, table[i].skip, table[i].len);
    }
}

CASE(by_the_page_cache)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    in_all_ways(fd, false);
    in_all_ways(fd, true);
    close(fd);
}

CASE(past_the_page_cache)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (fd < 0) { /* tmpfs, before Linux 6.6 */
        assert_int_equal(errno, EINVAL);
        return;
    }
    in_all_ways(fd, false);
    in_all_ways(fd, true);
    close(fd);
}

CASE(what_cannot_be_read_says_why)
{
    for (int ring = 0; ring < 2; ring++) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        struct fl_read r = {.fd = fd, .to = {(uintptr_t)memory, 8 << 20}, .ring = ring != 0};
        assert_int_equal(fl_read_file(&r), -EBADF);
        close(fd);
        r.fd = 1000;
        assert_int_equal(fl_read_file(&r), -EBADF);
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        r.fd = pipes[0];
        assert_int_equal(fl_read_file(&r), -ESPIPE);
        close(pipes[0]);
        close(pipes[1]);
    }
}

CASES_MAIN(.group_setup = make_file, .group_teardown = drop_file)
