/* realloc without a move: a LIVE extent gives up its tail, or takes over the FREE memory behind it. */
#include "region/internal.h"

static void shrink(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_range tail = {e->base + len, e->len - len};

    fl_region_count_use(r, -(int64_t)tail.len);
    e->len = len;
    fl_extent_publish(r, e);
    (void)fl_fit_insert(r, fl_extent_new(r, tail, FL_CONTENT_POPULATED));
}

static bool extend(struct fl_region *r, struct fl_extent *e, size_t len, struct fl_grant *g)
{
    uintptr_t end = e->base + e->len;
    size_t more = len - e->len, have = 0, fresh = 0, own = 0;
    struct fl_extent *first = fl_extent_free_at(r, end), *f = first;

    for (int i = 0; i < FL_RUN_EXTENTS && f != NULL && have < more; i++) {
        have += f->len;
        if (f->content == FL_CONTENT_EMPTY) {
            fresh += fl_min(f->base + f->len, fl_align_up(end + more, fl_page.huge)) - f->base;
        } else {
            own += f->len;
        }
        f = fl_extent_free_at(r, f->base + f->len);
    }
    if (have < more || (fresh != 0 && fl_supply_plan(r, g, more, fresh, own) != 0)) {
        return false;
    }
    struct fl_extent *tail = fl_carve(r, first, end, more, g);
    if (tail == NULL) {
        fl_supply_cancel(r, g);
        return false;
    }
    fl_supply_claim(r, g);
    fl_extent_drop(r, tail);
    e->len = len;
    fl_extent_publish(r, e);
    fl_region_count_use(r, (int64_t)more);
    return true;
}

/* A LAZY extent gives whole huge pages of its tail back, and its addresses. */
static void shrink_lazy(struct fl_region *r, struct fl_extent *e, size_t len)
{
    size_t kept = fl_align_up(len, fl_page.huge);
    struct fl_range tail = {e->base + kept, e->len - kept};

    if (tail.len == 0 || fl_vspace_decommit(&r->window, tail) != 0) {
        return;
    }
    fl_region_count_use(r, -(int64_t)tail.len);
    e->len = kept;
    fl_extent_publish(r, e);
    (void)fl_fit_insert(r, fl_extent_new(r, tail, FL_CONTENT_EMPTY));
}

/* A LAZY extent takes over EMPTY addresses behind it, in whole huge pages, and stays LAZY. */
static bool extend_lazy(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_grant g = {.refusal = 0};
    uintptr_t end = e->base + e->len;
    size_t more = fl_align_up(len, fl_page.huge) - e->len;
    struct fl_extent *next = fl_extent_free_at(r, end);

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

static bool resize_lazy(struct fl_region *r, struct fl_extent *e, size_t len)
{
    if (len > e->len) {
        return extend_lazy(r, e, len);
    }
    shrink_lazy(r, e, len);
    return true;
}

bool fl_region_resize(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_grant g = {.refusal = 0};
    bool done = true;

    fl_region_lock(r);
    if (fl_extent_reserve(r, FL_CARVE_DESCRIPTORS) != 0) {
        done = len <= e->len;
    } else if (e->content == FL_CONTENT_LAZY) {
        done = resize_lazy(r, e, len);
    } else if (len < e->len) {
        shrink(r, e, len);
    } else if (len > e->len) {
        done = extend(r, e, len, &g);
    }
    fl_region_unlock(r);
    if (done) {
        fl_grant_fulfil(r, &g);
    }
    return done;
}

struct fl_extent *fl_region_move(struct fl_region *r, struct fl_extent *e, size_t len)
{
    if (e->content != FL_CONTENT_LAZY || r->window.reserved || len <= e->len) {
        return NULL;
    }
    fl_region_lock(r);
    struct fl_extent *to = fl_region_is_absurd(r, len) ? NULL : fl_take_lazy(r, len, fl_page.base);
    if (to != NULL) {
        fl_region_count_use(r, (int64_t)to->len);
        r->stats.takes++;
    }
    fl_region_unlock(r);
    if (to == NULL) {
        return NULL;
    }
    bool moved = fl_sys.remap(fl_extent_range(e), to->base) == 0;
    struct fl_extent *gone = moved ? e : to;
    (void)fl_extent_claim(gone, atomic_load_explicit(&r->epoch, memory_order_relaxed));
    if (!moved) {
        fl_region_give(r, to);
        return NULL;
    }
    fl_region_lock(r);
    e->content = FL_CONTENT_EMPTY; /* the kernel took the map along with the pages */
    fl_region_give_locked(r, e);
    fl_region_unlock(r);
    return to;
}
