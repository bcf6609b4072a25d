/* Where the blocks of a mirror lie that are all there at the same time: inputs first, side by side,
 * once for each slot. Pure. */
#include "gpu/mirror/mirror.h"

#include <errno.h>

static const size_t align_least = 256; /* bytes: what cuMemAlloc gives, and copies are fast from */
static const size_t len_most = SIZE_MAX / 4;

/* Behind `*end`; false: it cannot be. */
static bool put(struct fl_gpu_slot *s, size_t *end)
{
    size_t align = s->align != 0 ? s->align : align_least;

    if (!fl_is_pow2(align) || align > len_most || s->size > len_most || *end > len_most) {
        return false;
    }
    s->offset = fl_align_up(*end, align);
    *end = s->offset + s->size;
    return *end <= len_most;
}

/* The copies that bring all inputs over: a gap that is cheaper to copy than to leave out is
 * copied. */
void fl_mirror_add_run(struct fl_mirror_run *run, size_t *runs, struct fl_mirror_run next,
                       size_t gap)
{
    struct fl_mirror_run *last = *runs != 0 ? &run[*runs - 1] : NULL;

    if (next.len == 0) {
        return;
    }
    if (last != NULL && next.offset - (last->offset + last->len) <= gap) {
        last->len = next.offset + next.len - last->offset;
    } else {
        run[(*runs)++] = next;
    }
}

static size_t widest(const struct fl_gpu_slot *slot, size_t count)
{
    size_t align = align_least;

    for (const struct fl_gpu_slot *s = slot; s < slot + count; s++) {
        align = s->input ? fl_max(align, s->align) : align;
    }
    return align;
}

int fl_mirror_lay_out(struct fl_gpu_slot *slot, size_t count, unsigned slots, size_t gap,
                      struct fl_mirror_layout *out)
{
    size_t end = 0;

    out->runs = 0;
    for (struct fl_gpu_slot *s = slot; s < slot + count; s++) {
        if (s->input && !put(s, &end)) {
            return -EINVAL;
        }
        if (s->input) {
            fl_mirror_add_run(out->run, &out->runs, (struct fl_mirror_run){s->offset, s->size},
                              gap);
        }
    }
    out->zone = fl_align_up(end, widest(slot, count)); /* the same offsets are good in each slot */
    fl_assert(out->zone >= end);
    end = slots * out->zone;
    for (struct fl_gpu_slot *s = slot; s < slot + count; s++) {
        if (!s->input && !put(s, &end)) {
            return -EINVAL;
        }
    }
    out->len = end;
    return 0;
}
