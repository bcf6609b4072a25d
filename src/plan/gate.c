/* Is a plan worth its memory? A step is held against its shadow: see shadow.c. Nothing here is on a request's way: the worker looks at the steps that a
 * layout is made from, the context's thread at the end of a step that was recorded beside being served. */
#include "plan/internal.h"

/* By how much a plan may be above: what one allocator needs more than another is no reason to begin anew. */
enum { ABOVE_SHARE = 20 };
/* Looks at a block: of the worker for all steps, and at a step's end. */
static const uint64_t work_behind = 1 << 26, work_between = 1 << 20;

static bool look(const struct fl_lives *step, const struct fl_slot *slot, uint64_t most_work,
                 struct fl_shadow_peaks *out)
{
    size_t len = fl_shadow_scratch(step->n);
    void *scratch = fl_plan_map_locked(len);
    bool known = scratch != NULL && fl_shadow(step, slot, most_work, out, scratch, len);

    fl_plan_unmap_locked((uintptr_t)scratch, len);
    return known;
}

void fl_gate_look(struct fl_layout *l, const struct fl_lives *lives, unsigned nlives)
{
    for (unsigned i = 0; i < nlives; i++) {
        struct fl_shadow_peaks peaks;
        if (!look(&lives[i], i == 0 ? l->slot : NULL, work_behind / nlives, &peaks)) {
            l->shadow = 0;
            return;
        }
        l->shadow = fl_max(l->shadow, peaks.online);
        l->outside =
            i == 0 ? peaks.outside : l->outside; /* of the newest, whose requests the slots are */
    }
}

static bool is_above(uint64_t bytes, uint64_t shadow)
{
    uint64_t whole = fl_align_up(shadow, fl_page.huge);

    return bytes > whole + whole / ABOVE_SHARE;
}

/* Blocks of a zone have two places each for all of the step, since somebody wished it: that is no waste. */
static uint64_t wished_for(const struct fl_layout *l)
{
    uint64_t sum = 0;

    for (unsigned z = 1; z <= FL_PLAN_ZONES; z++) {
        sum += 2 * l->zone[z].len;
    }
    return sum;
}

/* Where pages do not move all that it is high is in memory: no reason to do without it. */
void fl_gate_judge(struct fl_layout *l)
{
    uint64_t wished = wished_for(l), most = l->largest + l->largest / 64 + wished;

    l->needs = l->largest != 0 && most < l->height ? most : l->height;
    l->above = l->shadow != 0 &&
               is_above(fl_align_up(l->needs, fl_page.huge) + l->outside, l->shadow + wished);
}

bool fl_gate_was_above(struct fl_step_context *c)
{
    const struct fl_layout *l = c->layout;
    const struct fl_record *rec = c->completed;
    struct fl_shadow_peaks peaks;

    /* What was idle went where the step wanted it; or stays, for whoever holds it. */
    if (c->arena == NULL || c->gave_up ||
        atomic_load_explicit(&c->arena->held, memory_order_relaxed) != 0) {
        return false;
    }
    /* Nothing of it went elsewhere, or hardly; and a search may make it lower yet. */
    if (rec == NULL) {
        return l->above && atomic_load_explicit(&c->better_for, memory_order_relaxed) != l->first;
    }
    struct fl_lives lives = {rec->life, rec->n, rec->begin, rec->end};
    uint64_t needs = fl_align_up(l->needs, fl_page.huge);
    return look(&lives, NULL, work_between, &peaks) &&
           is_above(fl_min(fl_arena_holds(c->arena), needs) + peaks.outside,
                    peaks.online + wished_for(l));
}
