/* A LIVE extent divided into blocks that the region knows by address. Taking and giving a block is no business of the
 * region's: no lock, no list. All it costs is a descriptor a granule, which is made once and kept. */
#include "region/internal.h"

#include <errno.h>

/* Side by side, so that a block's place in it is its granule. What there was before goes to the spare ones. */
static int make_room(struct fl_region *r, struct fl_inner *in, size_t granules)
{
    size_t index = r->descriptors_used + 1, bytes = granules * sizeof(struct fl_extent);
    size_t from = index * sizeof(struct fl_extent);

    if (index + granules > UINT32_MAX || fl_vspace_grow(&r->descriptors, from + bytes) != 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < in->room; i++) {
        in->block[i].content = FL_CONTENT_EMPTY;
        fl_extent_drop(r, &in->block[i]);
    }
    r->descriptors_used += granules;
    in->block =
        (struct fl_extent *)r->descriptors.all.base + index; /* NOLINT(performance-no-int-to-ptr) */
    in->room = granules;
    return 0;
}

static void make_block(struct fl_region *r, struct fl_inner *in, size_t i)
{
    struct fl_extent *e = &in->block[i];

    e->base = in->outer->base + (i << in->shift);
    e->len = fl_page.base;
    e->content = FL_CONTENT_INNER;
    e->inner = in;
    e->life = 0;
    atomic_store_explicit(&e->handled, false, memory_order_relaxed);
    atomic_store_explicit(&e->state, FL_EXTENT_UNUSED, memory_order_relaxed);
    fl_extent_publish(r, e);
}

int fl_inner_open(struct fl_region *r, struct fl_inner *in, struct fl_extent *outer)
{
    size_t granules = outer->len >> in->shift;
    int rc = 0;

    fl_region_lock(r);
    if (granules > in->room) {
        rc = make_room(r, in, granules);
    }
    if (rc == 0) {
        in->outer = outer;
        in->granules = granules;
        for (size_t i = 0; i < granules; i++) {
            make_block(r, in, i);
        }
    }
    fl_region_unlock(r);
    return rc;
}

void fl_inner_close(struct fl_region *r, struct fl_inner *in)
{
    struct fl_extent *outer = in->outer;

    (void)fl_extent_claim(outer, atomic_load_explicit(&r->epoch, memory_order_relaxed));
    fl_region_lock(r);
    in->outer = NULL;
    fl_extent_publish(r, outer); /* it is found by its address again */
    fl_region_unlock(r);
    fl_region_give(r, outer);
}

bool fl_inner_renew(struct fl_region *r, struct fl_extent *e)
{
    struct fl_range all = {e->base, fl_align_up(e->len, (size_t)1 << e->inner->shift)};

    atomic_store_explicit(&e->handled, false, memory_order_relaxed);
    if (fl_vspace_decommit(&r->window, all) != 0) {
        return false;
    }
    return fl_vspace_commit(&r->window, all, r->config.huge) == 0 &&
           fl_sys.populate(all) != -EFAULT;
}
