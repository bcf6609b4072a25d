/* The helpers that are io_uring's workers: a ring for one range, opened and closed around it.
 *
 * The caller hands out all pieces, its own too, so nothing here is shared but with the kernel. Two
 * requests a worker are under way, so that none waits for the next. Nothing is allocated: liburing
 * maps the ring. Sources: io_uring_enter(2) IORING_OP_MADVISE, Linux 5.6; io_uring_register(2)
 * IOWQ_AFF, 5.14, IOWQ_MAX_WORKERS, 5.15. */
#include "sys/crew.h"

#if FL_HAVE_URING

#include <errno.h>
#include <liburing.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { EACH = 2, SLOTS = EACH * FL_CREW_MOST, WITHDRAWAL = SLOTS };

struct crew_ring {
    struct io_uring ring;
    struct fl_share *share;
    struct fl_range
        slot[SLOTS]; /* what the request of that number is about; len 0: none is under way */
    unsigned slots;  /* in use: EACH for each worker */
    unsigned out;    /* requests without an answer */
    bool
        mute; /* the kernel did not take a request: it lies in the queue, and no other may follow */
};

static _Atomic bool refused; /* for good: the kernel is not asked again */

/* By policy, or by a kernel that does not know it; want of memory or of descriptors is of the
 * moment. */
static bool is_for_good(int rc)
{
    return rc == -ENOSYS || rc == -EPERM || rc == -EACCES || rc == -EINVAL || rc == -EOPNOTSUPP;
}

static bool open_ring(struct crew_ring *c, const struct fl_cpu_ids *cpus)
{
    unsigned workers[2] = {c->slots / EACH, c->slots / EACH};

    if (atomic_load_explicit(&refused, memory_order_relaxed)) {
        return false;
    }
    int rc = io_uring_queue_init(c->slots, &c->ring, 0);
    if (rc == 0) {
        (void)io_uring_ring_dontfork(&c->ring);
        rc = io_uring_register_iowq_aff(&c->ring, sizeof *cpus, (const cpu_set_t *)cpus->word);
        if (rc == 0) {
            rc = io_uring_register_iowq_max_workers(&c->ring, workers);
        }
        if (rc != 0) {
            io_uring_queue_exit(&c->ring);
        }
    }
    if (is_for_good(rc)) {
        atomic_store_explicit(&refused, true, memory_order_relaxed);
    }
    return rc == 0;
}

/* One at a time: of several it would be hard to say which the kernel has taken. */
static bool send_one(struct crew_ring *c)
{
    c->mute = io_uring_submit(&c->ring) != 1;
    c->out += !c->mute;
    return !c->mute;
}

static bool send_piece(struct crew_ring *c, struct fl_range r, unsigned i)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&c->ring);

    fl_assert(i < c->slots && c->slot[i].len == 0);
    if (sqe == NULL) {
        return false;
    }
    io_uring_prep_madvise(sqe, (void *)r.base, (off_t)r.len, MADV_POPULATE_WRITE);
    io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    io_uring_sqe_set_data64(sqe, i);
    return send_one(c);
}

/* A piece for each request that is free. */
static void hand_out(struct crew_ring *c)
{
    for (unsigned i = 0; i < c->slots && !c->mute; i++) {
        struct fl_range r = c->slot[i];
        if (r.len != 0) {
            continue;
        }
        r = fl_share_take(c->share);
        if (r.len == 0) {
            return;
        }
        if (send_piece(c, r, i)) {
            c->slot[i] = r;
        } else {
            fl_share_fill(c->share, r);
        }
    }
}

/* What no worker has begun comes back, as ECANCELED. */
static void withdraw(struct crew_ring *c)
{
    for (unsigned i = 0; i < c->slots && !c->mute; i++) {
        struct io_uring_sqe *sqe = c->slot[i].len != 0 ? io_uring_get_sqe(&c->ring) : NULL;
        if (sqe != NULL) {
            io_uring_prep_cancel64(sqe, i, 0);
            io_uring_sqe_set_data64(sqe, WITHDRAWAL);
            (void)send_one(c);
        }
    }
}

/* Works off the answers that are there. What a worker did not do, the caller does. */
static void answers(struct crew_ring *c)
{
    struct io_uring_cqe *cqe;

    while (c->out != 0 && io_uring_peek_cqe(&c->ring, &cqe) == 0) {
        uint64_t i = io_uring_cqe_get_data64(cqe);
        int res = cqe->res;
        io_uring_cqe_seen(&c->ring, cqe);
        c->out--;
        fl_assert(i == WITHDRAWAL || (i < c->slots && c->slot[i].len != 0));
        if (i == WITHDRAWAL) {
            continue;
        }
        if (res == -ECANCELED || res == -EINTR || res == -EAGAIN) {
            fl_share_fill(c->share, c->slot[i]);
        } else if (res != 0) {
            fl_share_fail(c->share, res);
        }
        c->slot[i].len = 0;
    }
}

bool fl_ring_work(struct fl_share *s, const struct fl_cpu_ids *cpus)
{
    struct crew_ring c = {.share = s, .slots = EACH * (s->hands - 1)};
    struct io_uring_cqe *cqe;
    struct fl_range r;
    int rc = 0;

    fl_assert(c.slots != 0 && c.slots <= SLOTS);
    if (!open_ring(&c, cpus)) {
        return false;
    }
    do {
        hand_out(&c);
        r = fl_share_take(s);
        if (r.len != 0) {
            fl_share_fill(s, r);
            answers(&c);
        }
    } while (r.len != 0);
    withdraw(&c);
    while (c.out != 0 && (rc == 0 || rc == -EINTR || rc == -EAGAIN)) {
        rc = io_uring_wait_cqe(&c.ring, &cqe);
        answers(&c);
    }
    io_uring_queue_exit(&c.ring);
    return true;
}

#else

bool fl_ring_work(struct fl_share *s, const struct fl_cpu_ids *cpus)
{
    (void)s;
    (void)cpus;
    return false;
}

#endif
