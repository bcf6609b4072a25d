/* A lower layout than the one that serves: searched for by the worker, a little at a time so that its other jobs have their turn, and taken over
 * at a step's boundary.
 *
 * The search has a copy of all that it needs; what ties it to the context is the first serial number of the layout that it is for. Whoever does away
 * with that layout sets `better_for` to 0, and the search ends at its next turn; what it has found by then nobody takes. How far it goes is told by work
 * and not by time, so the layouts are the same each time. */
#include "plan/context.h"
#include "plan/store/store.h"

/* One turn and all of them, in microseconds as the packer reckons them; and how much longer than a turn the pause is that follows it. */
enum { TURN_COST = 50000, TURNS = 40, PAUSES = 4 };

struct fl_better {
    struct fl_layout *base; /* ours */
    struct fl_packing p;
    uint64_t height; /* of the layout that serves, or of the last one that was handed over */
    unsigned turns;  /* done */
    uint64_t due_ns; /* of the next */
};

static void end(struct fl_step_context *c)
{
    struct fl_better *b = c->repack.search;
    uint32_t done = b->base->first;

    (void)atomic_compare_exchange_strong(&c->repack.wanted, &done, 0);
    c->repack.search = NULL;
    fl_packing_close(&b->p);
    fl_layout_free(b->base);
    fl_plan_unmap_locked((uintptr_t)b, sizeof *b);
}

static struct fl_layout *copy(const struct fl_layout *l)
{
    fl_plan_lock();
    struct fl_layout *made = fl_layout_copy(l);
    fl_plan_unlock();
    return made;
}

/* Of what it has found so far, from here on. */
static void keep_addresses(struct fl_better *b)
{
    for (size_t i = 0; i < b->p.n; i++) {
        b->p.buffer[i].previous = b->p.buffer[i].offset;
    }
}

/* Hands over what is 0.5 % lower at least than what there is. */
static void hand_over(struct fl_step_context *c)
{
    enum { GAIN_SHARE = 200 };
    struct fl_better *b = c->repack.search;
    uint64_t height = fl_packing_height(&b->p, b->base);

    if (height >= b->height || b->height - height < b->height / GAIN_SHARE) {
        return;
    }
    struct fl_pack_progress progress = b->p.progress;
    /* What can lies where it did. */
    struct fl_layout *l = fl_packing_run(&b->p, 0, 0) == 0 ? copy(b->base) : NULL;
    b->p.progress = progress;
    if (l == NULL) {
        return;
    }
    fl_packing_store(&b->p, l);
    fl_layout_spots(l);
    keep_addresses(b);
    b->height = l->height;
    fl_layout_free(atomic_exchange(&c->repack.made, l));
}

static bool is_wanted(const struct fl_step_context *c)
{
    return atomic_load_explicit(&c->repack.wanted, memory_order_relaxed) ==
           c->repack.search->base->first;
}

void fl_better_begin(struct fl_step_context *c, const struct fl_layout *l, struct fl_packing *p)
{
    if (c->repack.search != NULL) { /* one at a time: what the other has found so far has to do */
        if (is_wanted(c)) {
            hand_over(c);
        }
        end(c);
    }
    if (!fl_packing_is_worth(p, l, l->height)) {
        return;
    }
    struct fl_better *b = fl_plan_map_locked(sizeof *b);
    struct fl_layout *base = b != NULL ? copy(l) : NULL;
    if (base == NULL) {
        fl_plan_unmap_locked((uintptr_t)b, b != NULL ? sizeof *b : 0);
        return;
    }
    *b = (struct fl_better){.base = base,
                            .p = *p,
                            .height = l->height,
                            .due_ns = fl_sys.now_ns() + (uint64_t)PAUSES * TURN_COST * 1000};
    *p = (struct fl_packing){.n = 0};
    keep_addresses(b);
    c->repack.search = b;
    atomic_store_explicit(&c->repack.wanted, l->first, memory_order_relaxed);
}

/* After 1, 4, 16 turns, and at the end: each swap is worth a search as long as all before. */
static bool is_time(unsigned turns)
{
    return (turns & (turns - 1)) == 0 && (turns & 0x55555555u) != 0;
}

uint64_t fl_better_work(struct fl_step_context *c)
{
    struct fl_better *b = c->repack.search;

    if (b == NULL) {
        return UINT64_MAX;
    }
    uint64_t now = fl_sys.now_ns();
    bool over = !is_wanted(c);
    if (!over && now < b->due_ns) {
        return b->due_ns - now;
    }
    over = over || fl_packing_run(&b->p, TURN_COST, 0) != 0;
    if (!over) {
        b->turns++;
        over = b->turns == TURNS || !fl_packing_is_worth(&b->p, b->base, b->height);
        if (over || is_time(b->turns)) {
            hand_over(c);
        }
    }
    if (over) {
        end(c);
        return UINT64_MAX;
    }
    uint64_t then = fl_sys.now_ns();
    b->due_ns = then + PAUSES * (then - now);
    return b->due_ns - then;
}

void fl_better_collect(struct fl_step_context *c)
{
    struct fl_layout *l = atomic_load_explicit(&c->repack.made, memory_order_relaxed);
    unsigned i = 0;

    if (l == NULL || (l = atomic_exchange(&c->repack.made, NULL)) == NULL) {
        return;
    }
    while (i < FL_LAYOUTS && (c->serve.known[i] == NULL || c->serve.known[i]->first != l->first)) {
        i++;
    }
    if (i == FL_LAYOUTS || c->serve.known[i]->wish) { /* it is made anew */
        fl_layout_free(l);
        return;
    }
    struct fl_layout *old = c->serve.known[i];
    l->past = old->past;
    fl_context_set_known(c, i, l);
    c->serve.layout = c->serve.layout == old ? l : c->serve.layout;
    c->serve.last = c->serve.last == old ? l : c->serve.last;
    c->serve.drain_steps = 2;
    fl_stats_bump(&c->stats.layouts);
    fl_timeline_moment(FL_TIMELINE_PLAN, l->height);
    fl_layout_free(old);
    fl_keep_note(l);
    fl_plan_call_worker(); /* to have it written */
}

void fl_better_forget(struct fl_step_context *c, const struct fl_layout *l)
{
    if (l == NULL || atomic_load_explicit(&c->repack.wanted, memory_order_relaxed) == l->first) {
        atomic_store_explicit(&c->repack.wanted, 0, memory_order_relaxed);
    }
}
