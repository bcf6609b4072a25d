/* A file into memory: pieces side by side by io_uring(7), into buffers that are registered with the
 * ring, or one after the other.
 *
 * O_DIRECT wants file offset, address and length in whole blocks. What of a read is so goes
 * straight there; its edges, or all of it where offset and address are not alike, by way of a
 * buffer. Sources: open(2) O_DIRECT, statx(2) STATX_DIOALIGN (Linux 6.1),
 * io_uring_prep_read_fixed(3). */
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if FL_HAVE_URING
#include <liburing.h>
#endif

enum { BLOCK_USUAL = 4096, BOUNCE = 1 << 20, RING_FROM = 2 << 20, DEPTH = 8, PIECE = 4 << 20 };

#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000U
#endif

static void *at(uintptr_t addr)
{
    return (void *)addr; /* NOLINT(performance-no-int-to-ptr) */
}

/* Bytes; 1: any offset will do. */
static size_t block_of(int fd)
{
    struct statx x;
    const uint32_t *align; /* Debian 12's header has no names for these two */
    int flags = (int)fl_call(SYS_fcntl, fd, F_GETFL);

    if (flags < 0 || (flags & O_DIRECT) == 0) {
        return 1;
    }
    memset(&x, 0, sizeof x);
    if (fl_call(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) != 0 ||
        (x.stx_mask & STATX_DIOALIGN) == 0) {
        return BLOCK_USUAL;
    }
    align = (const uint32_t *)(const void *)((const char *)&x + 0x98); /* memory's, then offset's */
    size_t block = fl_max(align[0], align[1]);
    return fl_is_pow2(block) ? block : BLOCK_USUAL;
}

/* Bytes; -errno. Less than `len`: the file ends there. */
static ssize_t read_all(int fd, void *to, size_t len, uint64_t offset)
{
    size_t have = 0;

    while (have < len) {
        ssize_t n = fl_call(SYS_pread64, fd, (char *)to + have, len - have, offset + have);
        if (n == -EINTR) {
            continue;
        }
        if (n < 0) {
            return n;
        }
        if (n == 0) {
            break;
        }
        have += (size_t)n;
    }
    return (ssize_t)have;
}

static void tell(const struct fl_read *r, uintptr_t base, size_t len)
{
    if (len != 0 && r->done != NULL) {
        r->done(r->arg, (struct fl_range){base, len});
    }
}

static uint64_t offset_of(const struct fl_read *r, uintptr_t addr)
{
    return r->offset + (addr - r->to.base);
}

/* In whole blocks, by way of a buffer. */
static int read_apart(const struct fl_read *r, struct fl_range part, size_t block)
{
    struct fl_range buffer = {0, BOUNCE + 3 * block};
    int rc = 0;

    if (part.len == 0) {
        return 0;
    }
    if (fl_sys.reserve(buffer.len, &buffer.base) != 0 || fl_sys.commit(buffer) != 0) {
        return -ENOMEM;
    }
    char *bounce = at(fl_align_up(buffer.base, block));
    for (size_t done = 0, n; done < part.len && rc == 0; done += n) {
        uint64_t from = offset_of(r, part.base + done), first = fl_align_down(from, block);
        size_t skip = (size_t)(from - first);
        n = fl_min(part.len - done, BOUNCE);
        ssize_t have = read_all(r->fd, bounce, fl_align_up(skip + n, block), first);
        rc = have < 0 ? (int)have : (size_t)have < skip + n ? -ENODATA : 0;
        n = have < 0 || (size_t)have < skip ? 0 : fl_min(n, (size_t)have - skip);
        memcpy(at(part.base + done), bounce + skip, n);
        tell(r, part.base + done, n);
    }
    (void)fl_sys.unmap(buffer);
    return rc;
}

/* One piece after the other. */
static int read_plainly(const struct fl_read *r, struct fl_range part)
{
    int rc = 0;

    for (size_t done = 0, n; done < part.len && rc == 0; done += n) {
        uintptr_t to = part.base + done;
        n = fl_min(part.len - done, PIECE);
        ssize_t have = read_all(r->fd, at(to), n, offset_of(r, to));
        rc = have < 0 ? (int)have : (size_t)have < n ? -ENODATA : 0;
        tell(r, to, have < 0 ? 0 : (size_t)have);
    }
    return rc;
}

#if FL_HAVE_URING

struct reads {
    const struct fl_read *r;
    struct io_uring ring;
    bool fixed;
    struct fl_range rest;        /* what has not been asked for */
    struct fl_range slot[DEPTH]; /* what each is about; len 0: it is free */
    unsigned out;                /* requests without an answer */
    bool
        mute; /* the kernel did not take a request: it lies in the queue, and no other may follow */
    int rc;   /* the first that is not 0 */
};

static void ask(struct reads *s, unsigned i)
{
    struct fl_range part = s->slot[i];
    struct io_uring_sqe *sqe = s->mute ? NULL : io_uring_get_sqe(&s->ring);

    fl_assert(i < DEPTH && part.len != 0);
    if (sqe == NULL) {
        return;
    }
    if (s->fixed) {
        io_uring_prep_read_fixed(sqe, s->r->fd, at(part.base), (unsigned)part.len,
                                 offset_of(s->r, part.base), 0);
    } else {
        io_uring_prep_read(sqe, s->r->fd, at(part.base), (unsigned)part.len,
                           offset_of(s->r, part.base));
    }
    io_uring_sqe_set_data64(sqe, i);
    s->mute = io_uring_submit(&s->ring) != 1;
    s->out += !s->mute;
}

/* Of a request that the kernel did not take, or gave back undone. */
static void do_it_here(struct reads *s, unsigned i)
{
    fl_assert(s->slot[i].len != 0);
    int rc = read_plainly(s->r, s->slot[i]);

    s->rc = s->rc != 0 ? s->rc : rc;
    s->slot[i].len = 0;
}

static void hand_out(struct reads *s)
{
    for (unsigned i = 0; i < DEPTH && s->rest.len != 0 && s->rc == 0; i++) {
        if (s->slot[i].len != 0) {
            continue;
        }
        s->slot[i] = (struct fl_range){s->rest.base, fl_min(s->rest.len, PIECE)};
        s->rest.base += s->slot[i].len;
        s->rest.len -= s->slot[i].len;
        unsigned before = s->out;
        ask(s, i);
        if (s->out == before) {
            do_it_here(s, i);
        }
    }
}

/* A read that was cut short, by a signal say, goes on here: in whole blocks it may be nowhere
 * else. */
static void answer(struct reads *s, unsigned i, int res)
{
    struct fl_range *part = &s->slot[i];

    fl_assert(i < DEPTH && part->len != 0 && s->out != 0);
    s->out--;
    if (res == -EINTR || res == -EAGAIN || res == -ECANCELED || res == -EINVAL ||
        res == -EOPNOTSUPP || (res > 0 && (size_t)res < part->len)) {
        do_it_here(s, i);
        return;
    }
    if (res <= 0) {
        s->rc = s->rc != 0 ? s->rc : res < 0 ? res : -ENODATA;
    } else {
        tell(s->r, part->base, part->len);
    }
    part->len = 0;
}

static int work(struct reads *s)
{
    struct io_uring_cqe *cqe;
    int rc = 0;

    do {
        hand_out(s);
        rc = s->out != 0 ? io_uring_wait_cqe(&s->ring, &cqe) : 0;
        while (s->out != 0 && io_uring_peek_cqe(&s->ring, &cqe) == 0) {
            unsigned i = (unsigned)io_uring_cqe_get_data64(cqe);
            int res = cqe->res;
            io_uring_cqe_seen(&s->ring, cqe);
            answer(s, i, res);
        }
    } while (s->out != 0 || (s->rest.len != 0 && s->rc == 0));
    (void)rc; /* what interrupts the wait is no matter: what is out is waited for */
    return s->rc;
}

/* A ring would wait for a pipe, and read it from wherever it is. */
static bool is_seekable(int fd)
{
    return fl_call(SYS_lseek, fd, 0, SEEK_CUR) >= 0;
}

/* False: there is no ring to be had, and nothing was read. */
static bool read_by_ring(const struct fl_read *r, struct fl_range part, int *out_rc)
{
    struct reads s = {.r = r, .rest = part};
    struct iovec all = {at(part.base), part.len};

    if (part.len < RING_FROM || !r->ring || fl_sys_is_confined() || !is_seekable(r->fd) ||
        io_uring_queue_init(DEPTH, &s.ring, 0) != 0) {
        return false;
    }
    (void)io_uring_ring_dontfork(&s.ring);
    s.fixed = part.len <= (size_t)1 << 30 && io_uring_register_buffers(&s.ring, &all, 1) == 0;
    *out_rc = work(&s);
    io_uring_queue_exit(&s.ring);
    return true;
}

#else

static bool read_by_ring(const struct fl_read *r, struct fl_range part, int *out_rc)
{
    (void)r;
    (void)part;
    (void)out_rc;
    return false;
}

#endif

static int read_whole(const struct fl_read *r, struct fl_range part)
{
    int rc = 0;

    return part.len == 0 || read_by_ring(r, part, &rc) ? rc : read_plainly(r, part);
}

int fl_read_file(const struct fl_read *r)
{
    size_t block = block_of(r->fd);
    bool alike = ((r->offset ^ r->to.base) & (block - 1)) == 0;
    struct fl_range inner = alike ? fl_range_inner(r->to, block) : (struct fl_range){r->to.base, 0};
    struct fl_range head = {r->to.base, inner.base - r->to.base}, tail;

    if (inner.len == 0) {
        head.len = 0;
        inner = (struct fl_range){r->to.base, 0};
    }
    tail = (struct fl_range){fl_range_end(inner), fl_range_end(r->to) - fl_range_end(inner)};
    fl_assert(head.len + inner.len + tail.len == r->to.len);
    int rc = read_apart(r, head, block);
    rc = rc == 0 ? read_whole(r, inner) : rc;
    return rc == 0 ? read_apart(r, tail, block) : rc;
}
