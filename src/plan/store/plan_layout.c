/* A plan of a file becomes a layout, if it is such as the planner makes. The file's fields are
 * right, each by itself (plan_format.c); here is looked at what they come to together. */
#include "plan/context.h"
#include "plan/store/store.h"

#include <string.h>

/* Do no two slots that live at once overlap? */
static bool is_free_of_overlap(const struct fl_layout *l)
{
    struct fl_merge_buffers b;
    size_t len = fl_pack_scratch(2 * (size_t)l->n);
    void *scratch = fl_plan_map(len);
    bool is_open = scratch != NULL && fl_engine_buffers(l, &b);
    bool is_good = is_open && fl_pack_is_valid(b.buffer, b.n, l->height, scratch, len);

    if (is_open) {
        fl_engine_drop_buffers(l, &b);
    }
    fl_plan_unmap(scratch, len);
    return is_good;
}

/* Such as engine.c makes? No layout is taller than all of its slots on top of each other, twice
 * each as if all were in two places, with each band of a zone on a huge page of its own. */
static bool is_sound(const struct fl_layout *l)
{
    uint64_t most = FL_GRANULE + (uint64_t)fl_page.huge * 2 * FL_PLAN_ZONES;
    bool is_good = l->n != 0 && l->height != 0;

    for (const struct fl_slot *s = l->slot; s < l->slot + l->n; s++) {
        most += 2 * (s->size >= FL_HUGE_FROM ? fl_align_up(s->size, fl_page.huge) + fl_page.huge
                                             : fl_align_up(s->size, FL_GRANULE));
        is_good = is_good && (!fl_slot_is_planned(s) || s->align <= FL_GRANULE);
    }
    return is_good && l->height <= most && is_free_of_overlap(l);
}

/* What a step will hold at once; 0: as much as the layout is high. The file has the largest of each
 * size, with its headroom. Where the smallest are much less they tell better: an arena that is
 * expected to hold too little grows. */
static uint64_t expected(const struct fl_layout *l)
{
    uint64_t least = 0, most = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        if (fl_slot_is_planned(&l->slot[i])) {
            least += l->slot[i].least;
            most += l->slot[i].size;
        }
    }
    return least < most / 10 * 9 ? l->height / 100 * (least / (most / 100 + 1)) : 0;
}

struct fl_layout *fl_keep_layout(const struct fl_file_plan *p)
{
    struct fl_layout *l = p->granule == FL_GRANULE ? fl_layout_new(p->n) : NULL;

    if (l == NULL) {
        return NULL;
    }
    memcpy(l->slot, p->slot, p->n * sizeof *l->slot);
    l->hash = p->signature;
    l->height = p->height;
    l->horizon = p->horizon; /* it is written again */
    if (!is_sound(l)) {
        fl_layout_free(l);
        return NULL;
    }
    l->largest = expected(l);
    fl_layout_make_entries(l);
    return l;
}
