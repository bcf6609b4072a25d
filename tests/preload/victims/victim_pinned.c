/* The kernel, another process or the program's own userfaultfd has a hand on pages of a live
 * block. */
#include "trio.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* An ordinary user may pin 8 MiB, and io_uring counts all of a huge page of which it pins a
 * part. */
static const size_t len = 3 * MIB;

static void both_ways(void (*f)(void))
{
    f();
    while_others_allocate(f);
}

/* Blocks next to it come, go and grow. */
static void neighbours_move(struct trio *t)
{
    drop(&t->before);
    drop(&t->after);
    t->before = stamped(3 * len, 12);
    t->after = stamped(len / 2, 34);
    char *p = realloc(t->after.p, 4 * len);
    CHECK(p != NULL && is_stamped_part(p, len / 2, len / 2, 34));
    t->after = (struct block){p, 4 * len, 35};
    renew(&t->after, 35);
    malloc_trim(0);
}

/* A file of `n` bytes that were stamped with `seed`; its descriptor. */
static int file_with(size_t n, uint64_t seed)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    struct block b = stamped(n, seed);
    CHECK(fd >= 0 && write(fd, b.p, n) == (ssize_t)n);
    drop(&b);
    return fd;
}

#if VICTIM_URING
#include <liburing.h>

static struct io_uring ring;

/* Not where the kernel has no rings for us. */
static void with_ring(void (*f)(void))
{
    int rc = io_uring_queue_init(8, &ring, 0);
    printf("ring %d\n", rc);
    free(malloc(len));
    if (rc == 0) {
        both_ways(f);
    }
}

static void register_block(const struct block *b)
{
    const struct iovec v = {b->p, b->n};
    CHECK(io_uring_register_buffers(&ring, &v, 1) == 0);
}

static void read_fixed(int fd, const struct block *b)
{
    struct io_uring_cqe *cqe;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    io_uring_prep_read_fixed(sqe, fd, b->p, (unsigned)b->n, 0, 0);
    CHECK(io_uring_submit(&ring) == 1);
    CHECK(io_uring_wait_cqe(&ring, &cqe) == 0);
    CHECK(cqe->res == (int)b->n);
    io_uring_cqe_seen(&ring, cqe);
}

/* What the kernel writes to a registered block is what the program reads there, whatever happens
 * around it. */
static void one_ring(void)
{
    int files[2] = {file_with(len, 77), file_with(len, 78)};
    struct trio t;
    make_trio(&t, len);
    register_block(&t.it);
    for (size_t i = 0; i < 6; i++) {
        neighbours_move(&t);
        read_fixed(files[i % 2], &t.it);
        t.it.seed = 77 + i % 2;
        check(&t.it);
        if (i == 3) {
            in_child(check_rest, &t);
        }
    }
    CHECK(io_uring_unregister_buffers(&ring) == 0);
    end_trio(&t);
    close(files[0]);
    close(files[1]);
}
MODE_IS(registered, with_ring(one_ring))

/* Freed or grown while it is registered: no other block is the worse for it. */
static void one_free(void)
{
    for (size_t i = 0; i < 4; i++) {
        struct trio t;
        make_trio(&t, len);
        register_block(&t.it);
        if (i % 2 == 0) {
            drop(&t.it);
        } else {
            char *p = realloc(t.it.p, 3 * len);
            CHECK(p != NULL && is_stamped_part(p, len, len, 22));
            t.it = (struct block){p, 3 * len, 23};
            renew(&t.it, 23);
        }
        struct block same = stamped(len, 1), more = stamped(5 * len, 2);
        char *zero = calloc(1, 2 * len);
        check_zero(zero, 2 * len);
        neighbours_move(&t);
        CHECK(io_uring_unregister_buffers(&ring) == 0);
        check_zero(zero, 2 * len);
        free(zero);
        drop(&same);
        drop(&more);
        drop(&t.it);
        check(&t.before);
        drop(&t.before);
        drop(&t.after);
    }
}
MODE_IS(freed_while_registered, with_ring(one_free))

/* Free again and registered again: the kernel must have the pages that the program sees. */
static void one_reuse(void)
{
    int fd = file_with(len, 79);
    for (size_t i = 0; i < 6; i++) {
        struct block b = stamped(len, i);
        register_block(&b);
        if (i % 2 == 0) {
            drop(&b);
            malloc_trim(0);
            CHECK(io_uring_unregister_buffers(&ring) == 0);
            b = stamped(len, i);
            register_block(&b);
        }
        read_fixed(fd, &b);
        b.seed = 79;
        check(&b);
        CHECK(io_uring_unregister_buffers(&ring) == 0);
        drop(&b);
    }
    close(fd);
}
MODE_IS(registered_again, with_ring(one_reuse))
#else
MODE_IS(registered, (void)0)
MODE_IS(freed_while_registered, (void)0)
MODE_IS(registered_again, (void)0)
#endif

/* Another process reads and writes the block; so does the kernel where it is untouched so far. */
static void child_reads(struct trio *t)
{
    struct block copy = stamped(t->it.n, 0);
    const struct iovec mine = {copy.p, copy.n}, theirs = {t->it.p, t->it.n};
    CHECK(process_vm_readv(getppid(), &mine, 1, &theirs, 1, 0) == (ssize_t)copy.n);
    copy.seed = t->it.seed;
    check(&copy);
    renew(&copy, 88);
    CHECK(process_vm_writev(getppid(), &mine, 1, &theirs, 1, 0) == (ssize_t)copy.n);
}
static void one_peek(void)
{
    struct trio t;
    make_trio(&t, len);
    in_child(child_reads, &t);
    t.it.seed = 88;
    check(&t.it);
    end_trio(&t);
}
MODE_IS(other_process, both_ways(one_peek))

static void fill_by_kernel(size_t n)
{
    int fd = file_with(n, 90), ends[2];
    struct block b = {malloc(n), n, 90}, c = {calloc(1, n), n, 90}, d = {malloc(n), n, 90};
    const struct iovec from = {b.p, n}, to = {d.p, n};
    CHECK(pread(fd, b.p, n, 0) == (ssize_t)n);
    check(&b);
    CHECK(process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)n);
    check(&d);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    for (size_t at = 0; at < n;) {
        size_t piece = n - at < 64 * KIB ? n - at : 64 * KIB;
        CHECK(send(ends[0], b.p + at, piece, 0) == (ssize_t)piece);
        CHECK(recv(ends[1], c.p + at, piece, MSG_WAITALL) == (ssize_t)piece);
        at += piece;
    }
    check(&c);
    CHECK(getrandom(c.p, 256, 0) == 256);
    free(c.p);
    drop(&b);
    drop(&d);
    close(fd);
    close(ends[0]);
    close(ends[1]);
}
static void fill_some(void)
{
    fill_by_kernel(300 * KIB);
    fill_by_kernel(5 * MIB);
    fill_by_kernel(70 * MIB);
}
MODE_IS(kernel_touches_first, both_ways(fill_some))

/* Pages on their way through a pipe, which is not told when their block is freed. */
static void one_flight(void)
{
    enum { IN_FLIGHT = 32 * 1024 };
    static char out[IN_FLIGHT];
    int ends[2];
    struct trio t;
    CHECK(pipe(ends) == 0);
    make_trio(&t, len);
    for (int i = 0; i < 4; i++) {
        const struct iovec v = {t.part, IN_FLIGHT};
        size_t from_start = (size_t)(t.part - t.it.p), first = (512 - from_start % 512) % 512;
        uint64_t word;
        CHECK(vmsplice(ends[1], &v, 1, 0) == IN_FLIGHT);
        neighbours_move(&t);
        CHECK(read(ends[0], out, IN_FLIGHT) == IN_FLIGHT);
        memcpy(&word, out + first, sizeof word);
        CHECK(word == t.it.seed + from_start + first && memcmp(out, t.part, IN_FLIGHT) == 0);
    }
    const struct iovec v = {t.part, IN_FLIGHT};
    CHECK(vmsplice(ends[1], &v, 1, 0) == IN_FLIGHT);
    drop(&t.it);
    struct block same = stamped(len, 3);
    neighbours_move(&t);
    CHECK(read(ends[0], out, IN_FLIGHT) == IN_FLIGHT);
    drop(&same);
    drop(&t.before);
    drop(&t.after);
    close(ends[0]);
    close(ends[1]);
}
MODE_IS(spliced, both_ways(one_flight))

/* The program's own userfaultfd on a block: it may have that, as with any memory of its own. */
static int registers(int fd, const struct trio *t, uint64_t mode)
{
    struct uffdio_register reg = {.range = {(uintptr_t)t->part, t->part_len}, .mode = mode};
    return ioctl(fd, UFFDIO_REGISTER, &reg);
}
static void one_watch(int fd, uint64_t mode)
{
    struct trio t;
    make_trio(&t, len);
    CHECK(registers(fd, &t, mode) == 0);
    check(&t.it);
    neighbours_move(&t);
    check(&t.it);
    renew(&t.it, 24);
    in_child(check_rest, &t);
    struct uffdio_range range = {(uintptr_t)t.part, t.part_len};
    CHECK(ioctl(fd, UFFDIO_UNREGISTER, &range) == 0);
    end_trio(&t);
}
static void watch(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    free(malloc(len));
    if (fd < 0) { /* where it is refused */
        return;
    }
    CHECK(ioctl(fd, UFFDIO_API, &api) == 0);
    one_watch(fd, UFFDIO_REGISTER_MODE_MISSING);
    if ((api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0) { /* not on arm64, by Linux 6.12 */
        one_watch(fd, UFFDIO_REGISTER_MODE_WP);
    }
    close(fd);
}
MODE_IS(own_userfaultfd, both_ways(watch))

MAIN()
