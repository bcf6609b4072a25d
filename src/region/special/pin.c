/* Pinned extents: prepared for a device, and left alone. See pin.h. */
#include "region/state/lock.h"
#include "region/special/part.h"

#include <errno.h>
#include <linux/mempolicy.h>

int fl_pin_bind(struct fl_range part, int node)
{
    struct fl_node_ids ids = {.word = {0}};

    if (node < 0 || node >= FL_NODE_IDS) {
        return -EINVAL;
    }
    ids.word[node / 64] = (uint64_t)1 << node % 64;
    return fl_nodes.bind(part, MPOL_PREFERRED, &ids);
}

/* One write a base page, that changes nothing: no other thread has it. */
static void touch(struct fl_range part)
{
    for (uintptr_t p = part.base; p < fl_range_end(part); p += fl_page.base) {
        volatile char *at = (volatile char *)p; /* NOLINT(performance-no-int-to-ptr) */
        *at = *at;
    }
}

static int populate(struct fl_range part, unsigned threads, bool by_touch)
{
    int rc = by_touch ? -EINVAL
                      : fl_sys.populate_shared(part, threads != 0 ? threads - 1 : FL_HELPERS_ALL);

    if (rc == -EINVAL || rc == -ENOSYS) {
        touch(part);
        rc = 0;
    }
    return rc == 0 ? 0 : -ENOMEM;
}

/* What lies in base pages would do so for as long as it is pinned. It may: then it is registered
 * more slowly. */
static void collapse(struct fl_range part)
{
    struct fl_range rest = fl_range_inner(part, fl_page.huge), split;

    while (rest.len != 0 && fl_sys.find_split(rest, &split) == 0) {
        if (fl_sys.advise(split, FL_ADVICE_COLLAPSE) != 0) {
            for (uintptr_t at = split.base; at < fl_range_end(split); at += fl_page.huge) {
                (void)fl_sys.advise((struct fl_range){at, fl_page.huge}, FL_ADVICE_COLLAPSE);
            }
        }
        rest = (struct fl_range){fl_range_end(split), fl_range_end(rest) - fl_range_end(split)};
    }
}

static int tell_of_fork(struct fl_range part, enum fl_pin_fork fork)
{
    if (fork == FL_PIN_COPIED ||
        (fork == FL_PIN_WIPED && fl_sys.advise(part, FL_ADVICE_WIPE) == 0)) {
        return 0;
    }
    return fl_sys.advise(part, FL_ADVICE_NO_FORK);
}

void fl_pin_release(struct fl_range part)
{
    (void)fl_sys.advise(part, FL_ADVICE_NO_WIPE);
    (void)fl_sys.advise(part, FL_ADVICE_FORK);
}

/* What has its advice and its node. */
static int prepare(struct fl_range part, const struct fl_pin *how, bool huge, bool by_touch)
{
    if (populate(part, how->threads, by_touch) != 0) {
        return -ENOMEM;
    }
    if (huge) {
        collapse(part);
    }
    if (tell_of_fork(part, how->fork) != 0) { /* too many maps: the kernel may have done a part */
        fl_pin_release(part);
        return -ENOMEM;
    }
    return 0;
}

int fl_pin_prepare(struct fl_range part, const struct fl_pin *how, bool huge, bool by_touch)
{
    if (huge) {
        (void)fl_sys.advise(part, FL_ADVICE_HUGE);
    }
    (void)fl_pin_bind(part, how->node); /* else from wherever the kernel likes */
    return prepare(part, how, huge, by_touch);
}

static unsigned zone_for(struct fl_region *r, int node)
{
    unsigned zone =
        r->zones.placing.nodes != 0 && node >= 0 ? r->zones.placing.zone_of(node) : FL_ZONES;

    return zone < r->zones.placing.nodes ? zone : fl_zone_first(r, fl_page.huge);
}

/* Lock: region. */
static void enlist(struct fl_region *r, struct fl_extent *e, enum fl_pin_fork fork)
{
    fl_assert(fl_region_is_locked(r));
    e->advised = fork == FL_PIN_APART ? FL_ADVISED_NO_FORK : 0;
    TAILQ_INSERT_TAIL(&r->pinned, e, by_age);
    r->held.pinned += e->len;
    atomic_store_explicit(&e->state, FL_EXTENT_PINNED, memory_order_relaxed);
}

/* Lock: region. */
static void strike(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    TAILQ_REMOVE(&r->pinned, e, by_age);
    r->held.pinned -= e->len;
    e->advised = 0;
    atomic_store_explicit(&e->state, FL_EXTENT_LIVE, memory_order_relaxed);
}

/* Where there are no zones the map has a policy of its own: then it is mapped anew when it comes
 * back. */
static int fill(struct fl_region *r, struct fl_extent *e, const struct fl_pin *how)
{
    struct fl_range all = fl_extent_range(e);
    bool bound = r->zones.placing.nodes == 0 && fl_pin_bind(all, how->node) == 0;

    atomic_store_explicit(&e->user_remapped, bound, memory_order_relaxed);
    if (!fl_part_fill(r, e, all,
                      &(struct fl_part_how){.asked_for = true,
                                            .threads = (uint8_t)fl_min(how->threads, 255)})) {
        return -ENOMEM;
    }
    return prepare(all, how, r->pages.huge, r->pages.by_touch);
}

int fl_region_take_pinned(struct fl_region *r, size_t len, const struct fl_pin *how,
                          struct fl_extent **out)
{
    if (len == 0 || len > r->space.window.all.len) {
        return -ENOMEM;
    }
    unsigned zone = zone_for(r, how->node);
    fl_region_lock(r);
    struct fl_extent *e = fl_part_take(r, fl_align_up(len, fl_page.huge), zone);
    fl_region_unlock(r);
    if (e == NULL) {
        return -ENOMEM;
    }
    int rc = fill(r, e, how);
    if (rc != 0) {
        fl_part_give(r, e, NULL);
        return rc;
    }
    fl_region_lock(r);
    fl_assert(fl_extent_is_populated(e) && e->filled == e->len);
    e->filled = 0; /* that it is PART is over */
    enlist(r, e, how->fork);
    fl_region_unlock(r);
    *out = e;
    return 0;
}

void fl_region_give_pinned(struct fl_region *r, struct fl_extent *e)
{
    fl_pin_release(fl_extent_range(e));
    fl_region_lock(r);
    strike(r, e);
    fl_region_unlock(r);
    (void)fl_extent_claim(e, fl_region_epoch(r));
    fl_region_give(r, e);
}

int fl_inner_pin(struct fl_region *r, struct fl_inner *in, struct fl_range part,
                 const struct fl_pin *how)
{
    if (fl_extent_is_pinned(in->outer)) {
        return -EBUSY;
    }
    int rc = prepare(part, how, r->pages.huge, r->pages.by_touch);
    if (rc == 0) {
        fl_region_lock(r);
        enlist(r, in->outer, how->fork);
        fl_region_unlock(r);
    }
    return rc;
}

void fl_inner_unpin(struct fl_region *r, struct fl_inner *in, struct fl_range part)
{
    fl_pin_release(part);
    fl_region_lock(r);
    strike(r, in->outer);
    fl_region_unlock(r);
}

bool fl_region_is_pinned(struct fl_region *r, struct fl_range range)
{
    struct fl_range extents = {r->space.first, fl_range_end(r->space.window.all) - r->space.first};
    uintptr_t end = range.len < UINTPTR_MAX - range.base ? fl_range_end(range) : UINTPTR_MAX;
    struct fl_range rest =
        fl_range_common((struct fl_range){range.base, end - range.base}, extents);

    if (FL_LIKELY(atomic_load_explicit(&r->held.pinned, memory_order_relaxed) == 0)) {
        return false;
    }
    for (uintptr_t at = rest.base; at < fl_range_end(rest);) {
        struct fl_extent *e;
        if (fl_inner_around(&r->space, at, &e) == NULL) {
            e = fl_extent_around(&r->space, at);
        }
        if (e == NULL || fl_extent_is_pinned(e)) {
            return e != NULL;
        }
        at = fl_max(at + fl_page.base, e->base + e->len);
    }
    return false;
}

/* No thread here has registered it, and none can give it back: it is lost for good. */
void fl_pin_fork_child(struct fl_region *r)
{
    struct fl_extent *e;

    fl_assert(fl_region_is_locked(r));
    TAILQ_FOREACH(e, &r->pinned, by_age)
    {
        if ((e->advised & FL_ADVISED_NO_FORK) == 0) {
            continue;
        }
        fl_assert(fl_extent_is_pinned(e));
        r->held.populated -= e->content == FL_CONTENT_PART ? e->filled : e->len;
        e->content = FL_CONTENT_PART;
        e->filled = 0;
        /* So that no other map comes there. */
        if (r->space.window.reserved && fl_sys.map_at(fl_extent_range(e)) == 0) {
            (void)fl_sys.decommit(fl_extent_range(e));
        }
    }
}
