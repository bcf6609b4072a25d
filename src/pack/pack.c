/* Lifetimes to offsets: part by part, by the skyline. On steps of training that is as low as a
 * layout can be, or nearly: docs/internals/planner.md. */
#include "pack/run.h"

#include <errno.h>

/* The blocks' offsets, and how high they come. False: scratch. */
static bool place_all(struct fl_pack_run *r, uint64_t *out_height)
{
    *out_height = 0;
    for (const struct fl_pack_part *p = r->part; p < r->part + r->parts; p++) {
        uint64_t height = fl_pack_skyline(r, p);
        if (height == UINT64_MAX) {
            return false;
        }
        *out_height = fl_max(*out_height, height);
    }
    return true;
}

size_t fl_pack_scratch(size_t n)
{
    return n * 256 + (size_t)64 * FL_KIB;
}

int fl_pack(struct fl_pack_buffer *b, size_t n, void *scratch, size_t scratch_len,
            struct fl_pack_result *out)
{
    struct fl_pack_run r = {
        .buffer = b, .n = n, .room = {scratch, (char *)scratch + scratch_len, false}};
    uint64_t height;

    *out = (struct fl_pack_result){0};
    if (n > UINT32_MAX / 4 || scratch_len < fl_pack_scratch(n)) {
        return -ENOMEM;
    }
    int rc = fl_pack_setup(&r);
    if (rc != 0) {
        return rc;
    }
    if (!place_all(&r, &height)) {
        return -ENOMEM;
    }
    fl_assert(height >= r.bound);
    for (const struct fl_pack_block *k = r.block; k < r.block + r.count; k++) {
        fl_assert((k->offset & k->mask) == 0 && k->offset + k->size <= height);
        b[k->id].offset = k->offset << r.shift;
    }
    out->bound = r.bound << r.shift;
    out->height = height << r.shift;
    return 0;
}
