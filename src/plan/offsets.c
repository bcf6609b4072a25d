/* From slots to offsets: the packer's input and output. */
#include "plan/context.h"

#include <errno.h>

static void add_buffer(const struct fl_slot *slot, size_t at, struct fl_merge_unit unit,
                       struct fl_merge_buffers *out)
{
    const struct fl_slot *s = &slot[at / 2];
    uint64_t u = unit.huge > unit.granule && s->size >= unit.huge_from ? unit.huge : unit.granule;

    fl_assert(fl_slot_is_planned(s) && s->birth < s->death && fl_is_pow2(u));
    out->back[out->n] = (uint32_t)at;
    out->buffer[out->n++] = (struct fl_pack_buffer){.size = fl_align_up(s->size, u),
                                                    .align = fl_max(s->align, u),
                                                    .birth = s->birth,
                                                    .death = s->death,
                                                    .offset = s->offset[at % 2]};
}

void fl_merge_buffers(const struct fl_slot *slot, size_t n, struct fl_merge_unit unit,
                      struct fl_merge_buffers *out)
{
    out->n = 0;
    for (uint32_t zone = 0; zone <= FL_PLAN_ZONES; zone++) {
        for (size_t place = 0; place < 2; place++) {
            for (size_t i = 0; i < n; i++) {
                const struct fl_slot *s = &slot[i];
                bool has_it = s->kind == FL_SLOT_DOUBLE_BUFFERED ||
                              (s->kind < FL_SLOT_DOUBLE_BUFFERED && place == 0);
                if (has_it && s->zone == zone) {
                    add_buffer(slot, 2 * i + place, unit, out);
                }
            }
        }
        out->free = zone == 0 ? out->n : out->free;
    }
}

static size_t buffers_len(const struct fl_layout *l)
{
    return 2 * (size_t)l->n * (sizeof(struct fl_pack_buffer) + sizeof(uint32_t));
}

static bool make_buffers(const struct fl_layout *l, struct fl_merge_buffers *out)
{
    struct fl_merge_unit unit = {FL_GRANULE, FL_HUGE_FROM, fl_page.huge};

    out->buffer = fl_own_map(&fl_plan.memory, buffers_len(l));
    if (out->buffer != NULL) {
        out->back = (uint32_t *)(out->buffer + 2 * (size_t)l->n);
        fl_merge_buffers(l->slot, l->n, unit, out);
    }
    return out->buffer != NULL;
}

static int find_offsets(struct fl_merge_buffers *b, struct fl_pack_result *out)
{
    size_t len = fl_pack_scratch(b->free);
    void *scratch = fl_own_map(&fl_plan.memory, len);
    int rc = scratch != NULL ? fl_pack(b->buffer, b->free, scratch, len, out) : -ENOMEM;

    fl_own_unmap(&fl_plan.memory, scratch, len);
    return rc;
}

static uint64_t largest_align(const struct fl_merge_buffers *b, size_t from, size_t to)
{
    uint64_t align = FL_GRANULE;

    for (size_t i = from; i < to; i++) {
        align = fl_max(align, b->buffer[i].align);
    }
    return align;
}

/* Blocks of zones live for the whole step: they lie one on the other, a zone's in even steps below
 * those in odd ones, and alike in both. Returns where the others begin. */
static uint64_t stack_zones(const struct fl_layout *l, struct fl_merge_buffers *b)
{
    uint64_t top = 0, align = largest_align(b, b->free, b->n);

    for (size_t i = b->free; i < b->n; i++) {
        bool is_other =
            i != b->free && (l->slot[b->back[i] / 2].zone != l->slot[b->back[i - 1] / 2].zone ||
                             b->back[i] % 2 != b->back[i - 1] % 2);
        top = fl_align_up(top, is_other ? align : b->buffer[i].align);
        b->buffer[i].offset = top;
        fl_assert(top % FL_GRANULE == 0);
        top += b->buffer[i].size;
    }
    return fl_align_up(top, largest_align(b, 0, b->free));
}

int fl_engine_pack(struct fl_layout *l)
{
    struct fl_merge_buffers b;
    struct fl_pack_result found;

    if (!make_buffers(l, &b)) {
        return -ENOMEM;
    }
    fl_assert(b.free <= b.n && b.n <= 2 * (size_t)l->n);
    int rc = find_offsets(&b, &found);
    if (rc == 0) {
        uint64_t floor = stack_zones(l, &b); /* those of zones lie below the others */
        for (size_t i = 0; i < b.n; i++) {
            uint64_t offset = b.buffer[i].offset + (i < b.free ? floor : 0);
            fl_assert(b.back[i] / 2 < l->n && offset % FL_GRANULE == 0);
            l->slot[b.back[i] / 2].offset[b.back[i] % 2] = offset;
        }
        l->height = fl_max(floor + found.height, FL_GRANULE);
    }
    fl_own_unmap(&fl_plan.memory, b.buffer, buffers_len(l));
    return rc;
}
