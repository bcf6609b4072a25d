/* How long a thread is watched for steps that are not declared, and what memory that takes.
 *
 * A watch that ends without a step is followed by a rest, in which requests are only counted, frees
 * not even that. Both become longer, until a seventeenth of all requests is watched. So a program
 * without steps pays next to nothing, and one whose steps begin late has them found late.
 * A detector comes into memory as it is used, and is gone while its thread rests. What a thread
 * leaves when it ends is kept for the next one, of a few threads and until none has come for a tick
 * or two: programs that make new threads in each step find it there. */
#include "plan/context.h"

#include <string.h>

enum { WATCH_LEAST = 16384, WATCH_DOUBLINGS = 2, REST_DOUBLINGS = 4 }; /* requests */
enum { WARM_MOST = 8 }; /* contexts without a thread, with their memory */

static const size_t warm_lives = (size_t)64 << 10; /* bytes of each record that are kept */

static unsigned warm;  /* Lock: plan */
static bool warm_used; /* since the last look at their age. Lock: plan */

/* It is new again, and not in memory. It stays mapped: addresses are not had without end. */
static void drop_detector(struct fl_step_context *c)
{
    struct fl_range all = {(uintptr_t)c->watch.detect, fl_detect_size()};

    if (fl_sys_is_confined() || fl_sys.advise(all, FL_ADVICE_DROP) != 0) {
        memset(c->watch.detect, 0, all.len); /* locked in memory, say */
    }
}

/* What the detector uses after so many events. */
static void bring(struct fl_step_context *c, uint32_t events)
{
    struct fl_range part[FL_DETECT_PARTS];

    fl_detect_ahead(c->watch.detect, events, part);
    for (unsigned i = 0; i < FL_DETECT_PARTS; i++) {
        if (part[i].len != 0) { /* a mere saving: it may fail */
            (void)fl_sys.populate(part[i]);
        }
    }
}

/* The end of the stretch that its last event is in. */
static uint32_t stretch_end(const struct fl_detect *d)
{
    uint32_t events = fl_detect_events(d), n = fl_detect_stretch(events);

    return events - events % n + n;
}

bool fl_watch_begin(struct fl_step_context *c)
{
    c->watch.unfound = 0;
    c->watch.rest = 0;
    c->watch.more_at = c->watch.detect != NULL ? stretch_end(c->watch.detect) : FL_DETECT_STRETCH;
    if (c->watch.detect == NULL && !fl_sys_is_confined()) {
        c->watch.detect = fl_plan_map_locked(fl_detect_size());
    }
    if (c->watch.detect != NULL && fl_detect_events(c->watch.detect) == 0 &&
        !fl_sys_is_confined()) {
        bring(c, 0); /* no step is to take a fault for it */
    }
    return c->watch.detect != NULL;
}

void fl_watch_anew(struct fl_step_context *c)
{
    c->watch.unfound = 0;
    c->watch.watches = 0;
}

static uint32_t patience(const struct fl_step_context *c)
{
    return (uint32_t)WATCH_LEAST << fl_min(c->watch.watches, WATCH_DOUBLINGS);
}

/* The worker is called once for each stretch, for the next one. */
static void call_for_more(struct fl_step_context *c)
{
    if (fl_detect_events(c->watch.detect) < c->watch.more_at || !fl_plan.config.background) {
        return;
    }
    uint32_t end = stretch_end(c->watch.detect);
    bool all = end >= FL_DETECT_ALL;
    c->watch.more_at = all ? UINT32_MAX : end;
    if (!all) { /* release: pairs with fl_watch_warm, which finds the detector */
        atomic_store_explicit(&c->watch.warms, end, memory_order_release);
        fl_plan_call_worker();
    }
}

void fl_watch_warm(struct fl_step_context *c)
{
    uint32_t events = atomic_exchange(&c->watch.warms, 0);

    if (events != 0) {
        bring(c, events);
    }
}

void fl_watch_count(struct fl_step_context *c)
{
    call_for_more(c);
    if (++c->watch.unfound < patience(c)) {
        return;
    }
    c->watch.unfound = 0;
    if (fl_detect_follows(c->watch.detect) || fl_sys_is_confined()) {
        return; /* it may be a long one */
    }
    c->watch.rest = (uint64_t)patience(c) << fl_min(c->watch.watches, REST_DOUBLINGS);
    c->watch.watches++;
    fl_context_unfound(c);
    drop_detector(c);
}

/* Beyond `kept` bytes of each. What is written to it late stays there, so it is not unmapped. */
static void drop_records(struct fl_step_context *c, size_t kept)
{
    size_t len = FL_LIVES_MOST * sizeof *c->learn.record->life;

    for (struct fl_record *rec = c->learn.record; rec < c->learn.record + FL_RECORDS; rec++) {
        if (rec->life != NULL && !fl_sys_is_confined()) {
            struct fl_range rest = {(uintptr_t)rec->life + kept, len - kept};
            (void)fl_sys.advise(rest, FL_ADVICE_DROP);
        }
    }
}

void fl_watch_leave(struct fl_step_context *c)
{
    bool beyond = c->watch.detect != NULL && fl_detect_events(c->watch.detect) >= FL_DETECT_STRETCH;

    atomic_store_explicit(&c->watch.warms, 0, memory_order_relaxed);
    fl_plan_lock();
    bool keeps = !beyond && warm < WARM_MOST;
    fl_plan_unlock();
    drop_records(c, keeps ? warm_lives : 0);
    if (!keeps && c->watch.detect != NULL) {
        drop_detector(c);
    }
    fl_plan_lock();
    c->watch.warm = keeps && warm < WARM_MOST;
    warm += c->watch.warm;
    warm_used = warm_used || c->watch.warm;
    struct fl_step_context **list = c->watch.warm ? &fl_plan.free : &fl_plan.free_cold;
    c->who.free_next = *list;
    *list = c;
    fl_plan_unlock();
}

struct fl_step_context *fl_watch_get(void)
{
    struct fl_step_context **list = fl_plan.free != NULL ? &fl_plan.free : &fl_plan.free_cold;
    struct fl_step_context *c = *list;

    if (c != NULL) {
        *list = c->who.free_next;
        warm -= c->watch.warm;
        warm_used = warm_used || c->watch.warm;
        c->watch.warm = false;
    }
    return c;
}

/* Those that are warm, if none came or went since the last time. */
static struct fl_step_context *take_idle(void)
{
    struct fl_step_context *idle = warm_used ? NULL : fl_plan.free;

    warm_used = false;
    if (idle != NULL) {
        fl_plan.free = NULL;
        warm = 0;
    }
    return idle;
}

uint64_t fl_watch_age(void)
{
    fl_plan_lock();
    struct fl_step_context *c = take_idle(), *next;
    bool more = fl_plan.free != NULL;
    fl_plan_unlock();

    for (; c != NULL; c = next) {
        next = c->who.free_next;
        drop_records(c, 0);
        if (c->watch.detect != NULL) {
            drop_detector(c);
        }
        fl_plan_lock();
        c->watch.warm = false;
        c->who.free_next = fl_plan.free_cold;
        fl_plan.free_cold = c;
        fl_plan_unlock();
    }
    return more ? fl_plan.config.tick_ns : UINT64_MAX;
}
