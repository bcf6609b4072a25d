/* Memory that rests.
 *
 * The worker looks whether requests come to the region or to its caches. When none has come for a
 * while, what is free is hidden from core dumps: advice.c. Among requests what was freed two ticks
 * ago is.
 *
 * A process whose threads were a crowd has that memory go back to the kernel, instead of at its
 * age. What one thread frees is kept since the same thread asks for as much again soon. Of a
 * crowd's threads only so many run at a time as there are CPUs, each with its own share of what is
 * free, and each rests for long: what all of them held at one time is more than what those that run
 * next ask for. glibc unmaps most of it at once. A crowd are twice as many threads as there are
 * CPUs, FL_CROWD at least, that freed blocks in the last few ticks: threads of parallel loops, one
 * for each CPU, are none, nor is one that works beside a hundred that sleep.
 *
 * Where requests come again after such a rest, the next one is to be twice as long.
 * State: r->resting; `came` of each cache; under the region lock. */
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/back/purge.h"

enum { REST_TICKS = 2 };  /* age at which memory is hidden though requests come */
enum { CROWD_TICKS = 4 }; /* for which a thread counts after it freed */
enum { CROWD_OF_CPU = 2 };
enum { BUSY_LOOKS = 16 }; /* in a row, after which looks become rare */
/* ns, all of them. Between rare looks, where there is a crowd, or may soon be one: */
static const uint64_t rare_of_crowd = 160000000;
static const uint64_t rest_of_crowd = 40000000, rest_least = 100000000, rest_most = 1600000000;
static const uint64_t forget_after = (uint64_t)60 * 1000000000;

struct pace {
    uint64_t rest, rare; /* without a request, at least; between two looks at who is busy */
};

struct use {
    uint64_t requests; /* ever */
    size_t threads;    /* that freed lately */
};

/* A cache that is emptied without a look at it is listed again with the next free. Lock: region. */
static struct use uses(const struct fl_region *r)
{
    uint32_t now = fl_region_epoch(r) + 1;
    struct use u = {.requests = r->stats.takes};

    fl_assert(fl_region_is_locked(r));
    for (struct fl_cache *c = r->caches.all; c != NULL; c = c->next) {
        u.requests += atomic_load_explicit(&c->stats.cache_hits, memory_order_relaxed);
        if (atomic_load_explicit(&c->listed, memory_order_relaxed)) {
            atomic_store_explicit(&c->came, now, memory_order_relaxed);
        }
        uint32_t came = atomic_load_explicit(&c->came, memory_order_relaxed);
        u.threads += came != 0 && now - came < CROWD_TICKS;
    }
    return u;
}

/* Threads that are one. No lock held: the kernel is asked. */
static size_t crowd_from(const struct fl_region *r)
{
    return r->config.crowd_goes ? fl_max(FL_CROWD, (size_t)CROWD_OF_CPU * fl_cpus_allowed())
                                : SIZE_MAX;
}

/* What had rested is used again: from then on memory has to rest twice as long. */
static void note_undone(struct fl_resting *s, uint64_t now)
{
    if (s->undone) {
        s->undone_ns = now;
        s->doubled++;
    } else if (now - s->undone_ns >= forget_after) {
        s->doubled = 0;
    }
    s->undone = false;
}

static uint64_t doubled(uint64_t ns, unsigned times)
{
    return times < 8 ? fl_min(ns << times, rest_most) : rest_most;
}

/* Returns the ns until memory has rested long enough; 0: it has. */
static uint64_t look(struct fl_resting *s, uint64_t requests, struct pace p, uint64_t now)
{
    bool came = requests != s->seen;

    s->undone |= came && s->gave;
    s->gave = s->gave && !came;
    note_undone(s, now);
    uint64_t rest = doubled(p.rest, s->doubled), rested = now - s->changed_ns;
    if (!came) {
        return rested < rest ? rest - rested : 0;
    }
    s->seen = requests;
    s->changed_ns = now;
    s->busy = s->busy < BUSY_LOOKS ? s->busy + 1 : s->busy;
    return s->busy < BUSY_LOOKS ? rest : fl_max(rest, p.rare);
}

uint64_t fl_region_rest(struct fl_region *r)
{
    size_t from = crowd_from(r);
    struct fl_resting *s = &r->resting;

    fl_assert(!fl_region_is_locked(r));
    fl_region_lock(r);
    struct use u = uses(r);
    bool crowd = u.threads >= from && fl_region_kept(r) == 0;
    struct pace p = {crowd ? rest_of_crowd : rest_least,
                     r->caches.owned >= from ? rare_of_crowd : rest_most};
    uint64_t rest = look(s, u.requests, p, fl_sys.now_ns());
    if (rest == 0) {
        s->busy = 0;
        (void)fl_cache_drain_all(r, 0);
    }
    if (rest == 0 && crowd) {
        fl_region_unlock(r);
        size_t given = fl_region_purge_some(r, 0, SIZE_MAX);
        fl_region_lock(r);
        s->gave |= given > r->held.in_use;
    }
    fl_advice_hide_unlocking(r, rest == 0 ? 0 : REST_TICKS, FL_HIDDEN_MOST);
    if (rest == 0) { /* the next free calls */
        atomic_store(&r->wants_worker, true);
    }
    fl_region_unlock(r);
    return rest == 0 ? UINT64_MAX : rest;
}
