/* Layouts as objects: made, copied, and their slots turned into plan entries. */
#include "plan/context.h"

#include <string.h>

/* Of a layout's object. */
static size_t bytes_of(size_t n)
{
    return sizeof(struct fl_layout) + (n + 1) * sizeof(struct fl_plan_entry) +
           n * sizeof(struct fl_slot);
}

struct fl_layout *fl_layout_new(size_t n)
{
    struct fl_layout *l = fl_own_map(&fl_plan.memory, bytes_of(n));

    fl_assert(n != 0 && n <= FL_LIVES_MOST);
    if (l != NULL) {
        l->n = (uint32_t)n;
        l->slot = (struct fl_slot *)&l->entry[n + 1];
    }
    return l;
}

struct fl_layout *fl_layout_copy(const struct fl_layout *from)
{
    struct fl_layout *l = fl_layout_new(from->n);

    if (l != NULL) {
        struct fl_slot *slot = l->slot;
        memcpy(l, from, bytes_of(from->n));
        l->slot = slot;
    }
    return l;
}

void fl_layout_free(struct fl_layout *l)
{
    if (l != NULL) {
        fl_own_unmap(&fl_plan.memory, l, bytes_of(l->n));
    }
}

/* The entry's sizes are known, and the layout's height. */
static void set_spot(const struct fl_layout *l, struct fl_plan_entry *entry, int parity,
                     uint64_t offset)
{
    uint32_t granule =
        offset != FL_PACK_NONE ? (uint32_t)(offset >> FL_GRANULE_SHIFT) : FL_ENTRY_NONE;
    size_t n = fl_granules(entry->most);
    bool has_place = granule + n <= l->height >> FL_GRANULE_SHIFT;
    bool constant = entry->least == entry->most && entry->most % fl_page.base == 0;

    fl_assert(offset == FL_PACK_NONE || offset % FL_GRANULE == 0);
    entry->granule[parity] = granule;
    entry->word[parity] = granule / FL_BITMAP_BITS;
    entry->mask[parity] = has_place && constant ? fl_bitmap_mask(granule, n) : 0;
}

static uint64_t first_requests(const struct fl_layout *l)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < FL_SIGNATURE; i++) {
        if (l->n < FL_SIGNATURE || l->entry[i].least != l->entry[i].most) {
            return 0;
        }
        hash = fl_record_mix(hash, l->entry[i].most);
    }
    return hash;
}

void fl_layout_make_entries(struct fl_layout *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct fl_slot *s = &l->slot[i];
        struct fl_plan_entry *entry = &l->entry[i];
        bool varies = s->least != s->most;
        fl_assert(s->least <= s->most && s->most <= s->size);
        entry->least = s->least;
        entry->most = varies ? s->size : s->most;
        entry->room = s->size;
        entry[1].before = entry->before + entry->most;
        bool planned = fl_slot_is_planned(s);
        set_spot(l, entry, 0, planned ? s->offset[0] : FL_PACK_NONE);
        set_spot(l, entry, 1,
                 planned ? s->offset[s->kind == FL_SLOT_DOUBLE_BUFFERED] : FL_PACK_NONE);
    }
    l->begins = first_requests(l);
    fl_layout_zones(l);
}
