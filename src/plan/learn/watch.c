/* How long a thread is watched for steps that are not declared, and what memory that takes.
 *
 * A watch that ends without a step is followed by a rest, in which requests are only counted, those
 * that the cache serves by 64, and frees not at all. Both become longer, until a seventeenth of all
 * requests is watched. So a program without steps pays next to nothing, and one whose steps begin
 * late has them found late.
 * What other threads were watched for in vain counts, too: the rests are as long as they would be
 * if one thread had made all those requests, and once they are many most threads begin with a rest.
 * One step of any thread, found or served, and all that is forgotten.
 * A detector comes into memory as it is used, and is gone while its thread rests. */
#include "plan/context.h"

#include <string.h>

enum { WATCH_LEAST = 16384, WATCH_DOUBLINGS = 2, REST_DOUBLINGS = 4 }; /* requests */
enum { REST_FIRST = 4 };     /* watches in vain, after which threads begin with a rest, */
enum { ONE_OF = 17 };        /* but for one of so many: else none that ends soon was ever watched */
enum { FIRST_EVENTS = 512 }; /* whose memory is there at once */

/* How often the shortest watch has doubled in what was watched in vain; at most REST_DOUBLINGS. */
static unsigned doublings(void)
{
    uint64_t times = atomic_load_explicit(&fl_plan.in_vain, memory_order_relaxed) / WATCH_LEAST;

    return times != 0 ? (unsigned)fl_min(63u - (unsigned)__builtin_clzll(times), REST_DOUBLINGS)
                      : 0;
}

/* It is new again, and not in memory. It stays mapped: addresses are not had without end. */
static void drop_detector(struct fl_step_context *c)
{
    struct fl_range all = {(uintptr_t)c->watch.detect, fl_detect_size()};

    if (fl_sys_is_confined() || fl_sys.advise(all, FL_ADVICE_DROP) != 0) {
        memset(c->watch.detect, 0, all.len); /* locked in memory, say */
    }
}

/* What the detector uses for the first `events` events. */
static void bring(const struct fl_detect *d, uint32_t events)
{
    struct fl_range part[FL_DETECT_PARTS];

    fl_detect_used(d, events, part);
    for (unsigned i = 0; i < FL_DETECT_PARTS; i++) { /* a mere saving: it may fail */
        (void)fl_sys.populate(part[i]);
    }
}

bool fl_watch_begin(struct fl_step_context *c)
{
    bool may = !fl_sys_is_confined();

    c->watch.unfound = 0;
    c->watch.rest = 0;
    if (c->watch.detect == NULL && may) {
        __atomic_store_n(&c->watch.detect, fl_context_part(c->who.id, FL_PART_DETECTOR),
                         __ATOMIC_RELAXED);
    }
    if (c->watch.detect != NULL && fl_detect_events(c->watch.detect) == 0) {
        c->watch.more_at = FIRST_EVENTS;
        if (may) { /* no step is to take a fault for it */
            bring(c->watch.detect, FIRST_EVENTS);
        }
    }
    return c->watch.detect != NULL;
}

/* What it rests for others' sake is over. Its own thread counts at the same time, and may win. */
static void shorten_rest(struct fl_step_context *c)
{
    uint64_t over = c->watch.over != 0 ? atomic_exchange(&c->watch.over, 0) : 0;
    uint64_t rest = c->watch.rest;

    while (over != 0 && rest != 0 &&
           !atomic_compare_exchange_weak(&c->watch.rest, &rest, rest > over ? rest - over : 1)) {
    }
}

void fl_watch_found(void)
{
    if (FL_LIKELY(atomic_load_explicit(&fl_plan.in_vain, memory_order_relaxed) == 0)) {
        return;
    }
    atomic_store_explicit(&fl_plan.in_vain, 0, memory_order_relaxed);
    for (uint32_t i = 1; i < atomic_load(&fl_plan.ncontexts); i++) {
        shorten_rest(fl_plan.context[i]);
    }
}

void fl_watch_anew(struct fl_step_context *c)
{
    c->watch.unfound = 0;
    c->watch.watches = 0;
    fl_watch_found();
}

void fl_watch_end(struct fl_step_context *c)
{
    atomic_fetch_add_explicit(&fl_plan.in_vain, c->watch.unfound, memory_order_relaxed);
    c->watch.unfound = 0;
}

void fl_watch_rest_first(struct fl_step_context *c)
{
    uint64_t vain = atomic_load_explicit(&fl_plan.in_vain, memory_order_relaxed);

    if (vain >= (uint64_t)REST_FIRST * WATCH_LEAST &&
        atomic_fetch_add_explicit(&fl_plan.begun, 1, memory_order_relaxed) % ONE_OF != ONE_OF - 1) {
        c->watch.rest = c->watch.over = (uint64_t)WATCH_LEAST << doublings();
    }
}

static uint32_t patience(const struct fl_step_context *c)
{
    return (uint32_t)WATCH_LEAST << fl_min(c->watch.watches, WATCH_DOUBLINGS);
}

/* The worker is called when the stream has doubled, for what it uses until it has done so twice
 * more. */
static void call_for_more(struct fl_step_context *c)
{
    uint32_t at = c->watch.more_at;

    if (fl_detect_events(c->watch.detect) < at || !fl_plan.config.background) {
        return;
    }
    c->watch.more_at = 4 * at < FL_DETECT_ALL ? 2 * at : UINT32_MAX;
    /* release: pairs with fl_watch_warm, which finds the detector */
    atomic_store_explicit(&c->watch.warms, 4 * at, memory_order_release);
    fl_plan_call_worker();
}

void fl_watch_warm(struct fl_step_context *c)
{
    /* looked at first: what no thread has is left as it is */
    uint32_t events = atomic_load(&c->watch.warms) != 0 ? atomic_exchange(&c->watch.warms, 0) : 0;
    const struct fl_detect *d = __atomic_load_n(&c->watch.detect, __ATOMIC_RELAXED);

    if (events != 0 && d != NULL) {
        bring(d, events);
    }
}

void fl_watch_count(struct fl_step_context *c)
{
    call_for_more(c);
    if (++c->watch.unfound < patience(c)) {
        return;
    }
    if (fl_detect_follows(c->watch.detect) || fl_sys_is_confined()) {
        c->watch.unfound = 0;
        return; /* it may be a long one */
    }
    fl_watch_end(c);
    uint64_t own = (uint64_t)patience(c) << fl_min(c->watch.watches, REST_DOUBLINGS);
    c->watch.rest = fl_max(own, (uint64_t)patience(c) << doublings());
    c->watch.over = c->watch.rest - own;
    c->watch.watches++;
    fl_context_unfound(c);
    drop_detector(c);
}
