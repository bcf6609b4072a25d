/* Population by several threads at once: who helps, how many, where they may run; and the helpers
 * that are threads.
 *
 * The helpers of io_uring are in ring.c. State: a few jobs, each claimed by a caller and left by
 * the last of its helpers. A helper that comes late finds nothing left and goes: the caller waits
 * for none that has not begun. Invariants: C1 a job whose owner's process is another one is free:
 * fork left it, and its helpers, behind. */
#include "sys/crew.h"
#include "sys/groups.h"
#include "sys/internal.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where a CPU is idle, helpers pay from 24 MiB on (0.65 of the time; 128 MiB: 0.51). Where all are
 * busy, a helper may lose its CPU with a piece in hand, and the caller waits: below 128 MiB that
 * costs more than is won (2 CPUs, load 11). */
enum {
    ALONE_BELOW = 128 * FL_MIB,
    PIECE_MAX = 16 * FL_MIB, /* the kernel holds the process's map for so long: 0.7 ms */
    EACH_LEAST = 8 * FL_MIB, /* of a helper: less is not worth its start */
    JOBS = 8,
};

static const uint64_t look_again_ns = 1000000000;

struct job {
    _Atomic uint64_t owner;   /* process id << 32 | threads that know of this job; those 0: free */
    _Atomic uint32_t busy;    /* helpers that may hold a piece; the caller sleeps on it */
    struct fl_crew_cpus cpus; /* written before any helper starts */
    struct fl_share share;
};

static struct job jobs[JOBS];
static struct fl_guest guests[FL_CREW_MOST];
static enum fl_crew_kind most = FL_CREW_URING; /* constant after boot */

void fl_crew_limit(enum fl_crew_kind best)
{
    most = best;
}

void fl_share_init(struct fl_share *s, struct fl_range all, unsigned helpers)
{
    fl_assert(all.len != 0 && helpers != 0);
    s->all = all;
    s->hands = helpers + 1;
    atomic_store_explicit(&s->handed, 0, memory_order_relaxed);
    atomic_store_explicit(&s->rc, 0, memory_order_relaxed);
}

struct fl_range fl_share_take(struct fl_share *s)
{
    size_t at = atomic_load(&s->handed), len;

    do {
        fl_assert(at <= s->all.len);
        size_t left = s->all.len - at;
        if (left == 0 || atomic_load(&s->rc) != 0) {
            return (struct fl_range){0, 0};
        }
        len = fl_max(fl_min(left / 2 / s->hands, PIECE_MAX), fl_page.huge);
        len = fl_min(fl_align_up(s->all.base + at + len, fl_page.huge) - s->all.base - at, left);
    } while (!atomic_compare_exchange_weak(&s->handed, &at, at + len));
    return (struct fl_range){s->all.base + at, len};
}

void fl_share_fail(struct fl_share *s, int rc)
{
    int none = 0;

    (void)atomic_compare_exchange_strong(&s->rc, &none, rc);
}

void fl_share_fill(struct fl_share *s, struct fl_range piece)
{
    int rc = fl_sys_linux.populate(piece);

    if (rc != 0) {
        fl_share_fail(s, rc);
    }
}

static void work(struct fl_share *s)
{
    for (struct fl_range r = fl_share_take(s); r.len != 0; r = fl_share_take(s)) {
        fl_share_fill(s, r);
    }
}

static uint64_t own_tag(void)
{
    return (uint64_t)fl_call_pid() << 32;
}

static bool is_free(uint64_t owner, uint64_t tag)
{
    return (uint32_t)owner == 0 || owner - (uint32_t)owner != tag;
}

/* A job for the caller; NULL when all are taken. */
static struct job *claim(uint64_t tag)
{
    for (struct job *j = jobs; j < jobs + JOBS; j++) {
        uint64_t owner = atomic_load(&j->owner);
        if (is_free(owner, tag) && atomic_compare_exchange_strong(&j->owner, &owner, tag + 1)) {
            return j;
        }
    }
    return NULL;
}

static void leave(struct job *j)
{
    fl_assert((uint32_t)atomic_load(&j->owner) != 0);
    atomic_fetch_sub(&j->owner, 1);
}

static void help(void *arg)
{
    struct job *j = arg;

    (void)fl_call(SYS_prctl, PR_SET_NAME, "fl-fill");
    /* Before the first look at what is left: when the caller has seen no helper busy, that look
     * finds nothing. */
    atomic_fetch_add(&j->busy, 1);
    if (atomic_load(&j->share.handed) < j->share.all.len) {
        (void)fl_call(SYS_sched_setaffinity, 0, sizeof j->cpus.idle, &j->cpus.idle);
        work(&j->share);
    }
    if (atomic_fetch_sub(&j->busy, 1) == 1) {
        (void)fl_sys_linux.wake(&j->busy, 1);
    }
    leave(j);
}

/* As many as are to be had. Their end is not waited for: that takes longer than what they had to
 * do. */
static unsigned start(struct job *j, unsigned wanted)
{
    unsigned n = 0;
    int rc = 0;

    for (struct fl_guest *g = guests; g < guests + FL_CREW_MOST && n < wanted; g++) {
        atomic_fetch_add(&j->owner, 1);
        rc = fl_guest_start(g, help, j);
        if (rc != 0) {
            leave(j);
        }
        if (rc != 0 && rc != -EBUSY) {
            break;
        }
        n += rc == 0;
    }
    return n;
}

void fl_crew_await(void)
{
    for (struct fl_guest *g = guests; g < guests + FL_CREW_MOST; g++) {
        (void)fl_guest_await(g, look_again_ns);
    }
}

void fl_crew_fork_child(void)
{
    fl_groups_fork_child();
    for (struct fl_guest *g = guests; g < guests + FL_CREW_MOST; g++) {
        fl_guest_fork_child(g);
    }
}

/* Until no helper holds a piece. False in a child that a signal handler forked meanwhile: the
 * helpers are not here. */
static bool await(struct job *j, uint64_t tag)
{
    uint32_t busy;

    while ((busy = atomic_load(&j->busy)) != 0 && own_tag() == tag) {
        (void)fl_sys_linux.wait(&j->busy, busy, look_again_ns);
    }
    return own_tag() == tag;
}

/* The caller's part, beside helpers that are threads. Returns as await(). */
static bool with_threads(struct job *j, uint64_t tag, unsigned helpers, enum fl_crew_kind *out_used)
{
    atomic_store(&j->busy, 0);
    *out_used = start(j, helpers) != 0 ? FL_CREW_THREADS : FL_CREW_ALONE;
    work(&j->share);
    return await(j, tag);
}

/* `there`: a page of the block's that is in memory. */
static int with_helpers(struct fl_range r, uintptr_t there, unsigned helpers,
                        enum fl_crew_kind allowed, enum fl_crew_kind *out_used)
{
    uint64_t tag = own_tag();
    struct job *j = claim(tag);

    if (j == NULL) {
        return fl_sys_linux.populate(r);
    }
    unsigned idle = fl_crew_cpus(there, &j->cpus);
    helpers = (unsigned)fl_min(fl_min(helpers, idle), fl_min(r.len / EACH_LEAST, FL_CREW_MOST));
    if (own_tag() != tag) { /* a signal handler has forked: in the child the job is another's */
        return fl_sys_linux.populate(r);
    }
    if (helpers == 0) {
        leave(j);
        return fl_sys_linux.populate(r);
    }
    fl_assert(helpers <= FL_CREW_MOST && r.len >= EACH_LEAST);
    fl_share_init(&j->share, r, helpers);
    if (allowed == FL_CREW_URING && fl_ring_work(&j->share, &j->cpus.idle)) {
        *out_used = FL_CREW_URING;
    } else if (!with_threads(j, tag, helpers, out_used)) {
        return fl_sys_linux.populate(r);
    }
    int rc = atomic_load(&j->share.rc);
    fl_assert(rc != 0 || atomic_load(&j->share.handed) == r.len);
    leave(j);
    return rc;
}

int fl_crew_populate(struct fl_range r, unsigned helpers, enum fl_crew_kind allowed,
                     enum fl_crew_kind *out_used)
{
    enum fl_crew_kind none, *used = out_used != NULL ? out_used : &none;
    struct fl_range first = {r.base, fl_align_up(r.base + 1, fl_page.huge) - r.base};

    *used = FL_CREW_ALONE;
    if (r.len < ALONE_BELOW || helpers == 0 || allowed == FL_CREW_ALONE) {
        return fl_sys_linux.populate(r);
    }
    fl_assert(fl_range_end(first) < fl_range_end(r));
    /* A kernel that cannot says so here, before a helper is called. */
    int rc = fl_sys_linux.populate(first);
    if (rc != 0) {
        return rc;
    }
    r = (struct fl_range){fl_range_end(first), r.len - first.len};
    /* A filter of the program's own may kill for a thread, as for a ring. A child of vfork makes
     * none, and places for threads may be few. */
    bool alone = fl_sys_is_confined() || fl_home_is_borrowed() || fl_places_are_few();
    return alone ? fl_sys_linux.populate(r) : with_helpers(r, first.base, helpers, allowed, used);
}

int fl_linux_populate_shared(struct fl_range r, unsigned helpers)
{
    enum fl_crew_kind best = fl_thread == FL_THREAD_APART ? FL_CREW_URING : FL_CREW_THREADS;

    return fl_crew_populate(r, helpers, best < most ? best : most, NULL);
}
