/* How long a thread is watched for steps that are not declared, and what memory that takes.
 *
 * A watch that ends without a step is followed by a rest, in which requests are only counted, frees not even that. Both become
 * longer, until a seventeenth of all requests is watched. So a program without steps pays next to nothing, and one whose steps
 * begin late has them found late.
 * A detector comes into memory as it is used, and is gone while its thread rests. What a thread leaves when it ends is kept for
 * the next one, of a few threads: programs that make new threads in each step find it there. */
#include "plan/learn/detect.h"
#include "plan/internal.h"

#include <string.h>

enum { WATCH_LEAST = 16384, WATCH_DOUBLINGS = 2, REST_DOUBLINGS = 4 }; /* requests */
enum { WARM_MOST = 8 }; /* contexts without a thread, with their memory */

static const size_t warm_lives = (size_t)64 << 10; /* bytes of each record that are kept */

static unsigned warm; /* Lock: plan */

/* It is new again, and not in memory. It stays mapped: addresses are not had without end. */
static void drop_detector(struct fl_step_context *c)
{
    struct fl_range all = {(uintptr_t)c->detect, fl_detect_size()};

    if (fl_sys_is_confined() || fl_sys.advise(all, FL_ADVICE_DROP) != 0) {
        memset(c->detect, 0, all.len); /* locked in memory, say */
    }
}

bool fl_watch_begin(struct fl_step_context *c)
{
    c->resting = false;
    c->unfound = 0;
    c->rest = 0;
    c->warmed = c->detect != NULL ? fl_detect_events(c->detect) : 0;
    if (c->detect == NULL && !fl_sys_is_confined()) {
        c->detect = fl_plan_map_locked(fl_detect_size());
    }
    if (c->detect != NULL && fl_detect_is_new(c->detect) && !fl_sys_is_confined()) {
        struct fl_range first = {(uintptr_t)c->detect, fl_detect_first()};
        (void)fl_sys.populate(first); /* no step is to take a fault for it */
    }
    return c->detect != NULL;
}

void fl_watch_anew(struct fl_step_context *c)
{
    c->resting = false;
    c->unfound = 0;
    c->watches = 0;
}

static uint32_t patience(const struct fl_step_context *c)
{
    return (uint32_t)WATCH_LEAST << fl_min(c->watches, WATCH_DOUBLINGS);
}

/* The worker is called once for each page of the ring. */
static void call_for_more(struct fl_step_context *c)
{
    uint32_t events = fl_detect_events(c->detect);

    if (events - c->warmed >= FL_DETECT_AHEAD && fl_plan.config.background) {
        c->warmed = events - events % FL_DETECT_AHEAD;
        /* release: pairs with fl_watch_warm, which finds the detector */
        atomic_store_explicit(&c->warms, c->warmed, memory_order_release);
        fl_plan_call_worker();
    }
}

void fl_watch_warm(struct fl_step_context *c)
{
    struct fl_range part[FL_DETECT_PARTS];
    uint32_t events = atomic_exchange(&c->warms, 0);

    if (events == 0) {
        return;
    }
    fl_detect_ahead(c->detect, events, part);
    for (unsigned i = 0; i < FL_DETECT_PARTS; i++) {
        if (part[i].len != 0) { /* a mere saving: it may fail */
            (void)fl_sys.populate(part[i]);
        }
    }
}

void fl_watch_count(struct fl_step_context *c)
{
    call_for_more(c);
    if (++c->unfound < patience(c)) {
        return;
    }
    c->unfound = 0;
    if (fl_detect_follows(c->detect) || fl_sys_is_confined()) {
        return; /* it may be a long one */
    }
    c->rest = (uint64_t)patience(c) << fl_min(c->watches, REST_DOUBLINGS);
    c->watches++;
    c->detecting = false;
    c->resting = !fl_context_knows_any(c);
    fl_record_drop_all(c); /* what was recorded has no end */
    drop_detector(c);
}

/* Beyond `kept` bytes of each. What is written to it late stays there, so it is not unmapped. */
static void drop_records(struct fl_step_context *c, size_t kept)
{
    size_t len = FL_LIVES_MOST * sizeof *c->record->life;

    for (struct fl_record *rec = c->record; rec < c->record + FL_RECORDS; rec++) {
        if (rec->life != NULL && !fl_sys_is_confined()) {
            struct fl_range rest = {(uintptr_t)rec->life + kept, len - kept};
            (void)fl_sys.advise(rest, FL_ADVICE_DROP);
        }
    }
}

void fl_watch_leave(struct fl_step_context *c)
{
    bool beyond = c->detect != NULL && fl_detect_is_beyond_first(c->detect);

    fl_plan_lock();
    bool keeps = !beyond && warm < WARM_MOST;
    fl_plan_unlock();
    drop_records(c, keeps ? warm_lives : 0);
    if (!keeps && c->detect != NULL) {
        drop_detector(c);
    }
    fl_plan_lock();
    c->warm = keeps && warm < WARM_MOST;
    warm += c->warm;
    struct fl_step_context **list = c->warm ? &fl_plan.free : &fl_plan.free_cold;
    c->free_next = *list;
    *list = c;
    fl_plan_unlock();
}

struct fl_step_context *fl_watch_get(void)
{
    struct fl_step_context **list = fl_plan.free != NULL ? &fl_plan.free : &fl_plan.free_cold;
    struct fl_step_context *c = *list;

    if (c != NULL) {
        *list = c->free_next;
        warm -= c->warm;
        c->warm = false;
    }
    return c;
}
