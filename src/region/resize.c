/* realloc without a move: a LIVE extent gives up its tail, or takes over the FREE memory behind it. */
#include "region/internal.h"

static void shrink(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_range tail = {e->base + len, e->len - len};

    fl_region_count_use(r, -(int64_t)tail.len);
    e->len = len;
    fl_extent_publish(r, e);
    (void)fl_fit_insert(r, fl_extent_new(r, tail, FL_CONTENT_DIRTY));
}

static bool extend(struct fl_region *r, struct fl_extent *e, size_t len, struct fl_grant *g)
{
    uintptr_t end = e->base + e->len;
    size_t more = len - e->len, have = 0, fresh = 0;
    struct fl_extent *first = fl_extent_free_at(r, end), *f = first;

    for (int i = 0; i < FL_RUN_EXTENTS && f != NULL && have < more; i++) {
        have += f->len;
        if (f->content == FL_CONTENT_EMPTY) {
            fresh += fl_min(f->base + f->len, fl_align_up(end + more, fl_page.huge)) - f->base;
        }
        f = fl_extent_free_at(r, f->base + f->len);
    }
    if (have < more || (fresh != 0 && fl_region_may_populate(r, len, fresh) != 0)) {
        return false;
    }
    struct fl_extent *tail = fl_carve(r, first, end, more, g);
    if (tail == NULL) {
        return false;
    }
    fl_extent_drop(r, tail);
    e->len = len;
    fl_extent_publish(r, e);
    fl_region_count_use(r, (int64_t)more);
    return true;
}

/* A LAZY extent takes over EMPTY addresses behind it, in whole huge pages, and stays LAZY. It gives nothing up until
 * half of it is not wanted. */
static bool resize_lazy(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_grant g = {.refusal = 0};
    uintptr_t end = e->base + e->len;
    size_t more = fl_align_up(len, fl_page.huge) - e->len;
    struct fl_extent *next = fl_extent_free_at(r, end);

    if (len <= e->len) {
        return len >= e->len / 2;
    }
    if (fl_region_is_absurd(r, len) || next == NULL || next->content != FL_CONTENT_EMPTY ||
        next->len < more) {
        return false;
    }
    struct fl_extent *tail = fl_carve(r, next, end, more, &g);
    if (tail == NULL) {
        return false;
    }
    r->populated_bytes -= more;
    fl_extent_drop(r, tail);
    e->len += more;
    fl_extent_publish(r, e);
    fl_region_count_use(r, (int64_t)more);
    return true;
}

bool fl_region_resize(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_grant g = {.refusal = 0};
    bool done = true;

    fl_region_lock(r);
    if (fl_extent_reserve(r, FL_CARVE_DESCRIPTORS) != 0) {
        done = len <= e->len && (e->content != FL_CONTENT_LAZY || len >= e->len / 2);
    } else if (e->content == FL_CONTENT_LAZY) {
        done = resize_lazy(r, e, len);
    } else if (len < e->len) {
        shrink(r, e, len);
    } else if (len > e->len) {
        done = extend(r, e, len, &g);
    }
    fl_region_unlock(r);
    if (done) {
        fl_grant_fulfil(r, &g, false);
    }
    return done;
}
