/* Layouts as objects: made, copied, and their slots turned into plan entries. */
#include "plan/context.h"

#include <string.h>

void fl_layout_free(struct fl_layout *l)
{
    if (l != NULL) {
        fl_plan_unmap(l, l->bytes);
    }
}

/* Of a layout's object, in bytes: where its entries begin, a cache line each; and its slots. */
static size_t entries_at(void)
{
    return fl_align_up(sizeof(struct fl_layout), FL_CACHE_LINE);
}

static size_t slots_at(size_t n)
{
    return entries_at() + (n + 1) * sizeof(struct fl_plan_entry);
}

static void lay_out(struct fl_layout *l, size_t bytes, size_t n)
{
    char *at = (char *)l;

    l->bytes = bytes;
    l->n = (uint32_t)n;
    l->entry = (struct fl_plan_entry *)(at + entries_at());
    l->slot = (struct fl_slot *)(at + slots_at(n));
}

struct fl_layout *fl_layout_new(size_t n)
{
    size_t bytes = slots_at(n) + n * sizeof(struct fl_slot);
    struct fl_layout *l = fl_plan_map(bytes);

    if (l != NULL) {
        lay_out(l, bytes, n);
    }
    return l;
}

struct fl_layout *fl_layout_copy(const struct fl_layout *from)
{
    struct fl_layout *l = fl_plan_map(from->bytes);

    if (l != NULL) {
        memcpy(l, from, from->bytes);
        lay_out(l, from->bytes, from->n);
    }
    return l;
}

static uint32_t granule_of(uint64_t offset)
{
    return offset != FL_PACK_NONE ? (uint32_t)(offset >> FL_GRANULE_SHIFT) : FL_ENTRY_NONE;
}

/* The entry's sizes are known, and the layout's height. */
static void set_spot(const struct fl_layout *l, struct fl_plan_entry *entry, int parity,
                     uint32_t granule)
{
    size_t n = fl_granules(entry->most);
    bool has_place = granule + n <= l->height >> FL_GRANULE_SHIFT;
    bool constant = entry->least == entry->most && entry->most % fl_page.base == 0;

    entry->granule[parity] = granule;
    entry->word[parity] = has_place ? granule / FL_BITMAP_BITS : FL_ENTRY_NONE;
    entry->mask[parity] = has_place && constant ? fl_bitmap_mask(granule, n) : 0;
}

void fl_layout_spots(struct fl_layout *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct fl_slot *s = &l->slot[i];
        uint32_t granule = fl_slot_is_planned(s) ? granule_of(s->offset[0]) : FL_ENTRY_NONE;
        set_spot(l, &l->entry[i], 0, granule);
        set_spot(l, &l->entry[i], 1,
                 s->kind == FL_SLOT_DOUBLE_BUFFERED ? granule_of(s->offset[1]) : granule);
    }
    fl_layout_zones(l);
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
        l->past.headroom = l->past.headroom || s->headroom != 0;
        entry->least = varies ? 1 : s->least;
        entry->most = varies ? s->size : s->most;
        entry->room = s->size;
        entry[1].before = entry->before + entry->most;
    }
    l->begins = first_requests(l);
    fl_layout_spots(l);
}
