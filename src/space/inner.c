/* Which divided extent an address lies in, and which block. See inner.h. */
#include "space/space.h"

struct fl_inner *fl_inner_around(struct fl_space *s, uintptr_t addr, struct fl_extent **out_outer)
{
    for (struct fl_inner *in = s->inners; in != NULL; in = in->next) {
        struct fl_extent *outer = in->outer;
        if (outer != NULL && addr - outer->base < outer->len) {
            *out_outer = outer;
            return in;
        }
    }
    return NULL;
}

static bool is_used(const struct fl_extent *e)
{
    return fl_extent_state(e) != FL_EXTENT_UNUSED;
}

struct fl_extent *fl_inner_block(const struct fl_inner *in, const struct fl_extent *outer,
                                 uintptr_t addr)
{
    size_t i = fl_min((addr - outer->base) >> in->shift, in->granules - 1);

    fl_assert(in->granules != 0 && in->shift >= fl_page.shift);
    while (i > 0 && !is_used(&in->block[i])) {
        i--;
    }
    struct fl_extent *e = &in->block[i];
    return is_used(e) && addr - e->base < e->len ? e : NULL;
}
