/* Blocks of a heap: first fit among its free extents, which merge when they touch. */
#include "heap/internal.h"

#include <errno.h>

static struct fl_extent *take_spare(struct fl_heap *h)
{
    struct fl_extent *e = SLIST_FIRST(&h->spare); /* H3: there is one */

    SLIST_REMOVE_HEAD(&h->spare, spare);
    return e;
}

static void drop(struct fl_heap *h, struct fl_extent *e)
{
    fl_tree_remove(&h->free, e);
    SLIST_INSERT_HEAD(&h->spare, e, spare);
}

static void enter(struct fl_heap *h, uintptr_t base, size_t len)
{
    struct fl_extent *e = take_spare(h);

    fl_assert(len != 0 && (base | len) % FL_HEAP_UNIT == 0);
    e->base = base;
    e->len = len;
    fl_tree_insert(&h->free, e);
}

static bool fits(const struct fl_extent *e, size_t len, size_t align)
{
    size_t lead = fl_align_up(e->base, align) - e->base;

    return lead <= e->len && len <= e->len - lead;
}

/* Where an aligned piece fits wherever the extent begins, by the tree; else each one is looked
 * at. */
static struct fl_extent *find(struct fl_heap *h, size_t len, size_t align)
{
    size_t want = len + (align - FL_HEAP_UNIT);
    struct fl_extent *e = want < len ? NULL : fl_tree_first(&h->free, want);

    if (e == NULL && align > FL_HEAP_UNIT) {
        e = fl_tree_lowest(&h->free);
        while (e != NULL && !fits(e, len, align)) {
            e = fl_tree_higher(e);
        }
    }
    fl_assert(e == NULL || fits(e, len, align));
    return e;
}

/* `part` of the free extent `e` is free no more. */
static void cut(struct fl_heap *h, struct fl_extent *e, struct fl_range part)
{
    size_t head = part.base - e->base;
    size_t tail = e->base + e->len - fl_range_end(part);

    fl_assert(part.base >= e->base && fl_range_end(part) <= e->base + e->len);
    if (head == 0 && tail == 0) {
        drop(h, e);
        return;
    }
    e->base = head != 0 ? e->base : fl_range_end(part);
    e->len = head != 0 ? head : tail;
    fl_tree_note_shorter(e);
    if (head != 0 && tail != 0) {
        enter(h, fl_range_end(part), tail);
    }
}

/* For what is cut, and for later frees. Where parts of blocks were freed, there are more free
 * extents than the blocks account for. */
static bool has_descriptors(struct fl_heap *h)
{
    return fl_heap_make_descriptors(h, h->s.blocks + 2) == 0 &&
           (!SLIST_EMPTY(&h->spare) || fl_heap_make_descriptors(h, h->made + 1) == 0);
}

static int take(struct fl_heap *h, size_t len, size_t align, uintptr_t *out)
{
    struct fl_extent *e = len != 0 ? find(h, len, align) : NULL;

    fl_assert(fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (e == NULL || !has_descriptors(h)) {
        h->s.refused++;
        return -ENOMEM;
    }
    *out = fl_align_up(e->base, align);
    cut(h, e, (struct fl_range){*out, len});
    h->s.blocks++;
    h->s.allocs++;
    h->s.used_bytes += len;
    h->s.used_peak_bytes = fl_max(h->s.used_peak_bytes, h->s.used_bytes);
    fl_assert(*out % align == 0 && h->s.used_bytes <= h->data.all.len);
    return 0;
}

/* In whole units; 0: more than addresses can count. */
static size_t units(size_t len)
{
    return fl_align_up(fl_max(len, 1), FL_HEAP_UNIT);
}

int fl_heap_alloc(struct fl_heap *heap, size_t len, size_t align, void **out)
{
    uintptr_t base;

    if (heap == NULL || out == NULL || (align != 0 && !fl_is_pow2(align))) {
        return -EINVAL;
    }
    int rc = fl_heap_lock();
    if (rc != 0) {
        return rc;
    }
    rc = take(heap, units(len), fl_max(align, FL_HEAP_UNIT), &base);
    fl_heap_unlock();
    if (rc == 0) {
        *out = (void *)base; /* NOLINT(performance-no-int-to-ptr) */
    }
    return rc;
}

static bool is_block(struct fl_heap *h, struct fl_range b)
{
    size_t offset = b.base - h->data.all.base;
    bool inside = offset < h->data.all.len && b.len <= h->data.all.len - offset;
    const struct fl_extent *e = inside ? fl_tree_from(&h->free, b.base) : NULL;

    return inside && b.len != 0 && b.base % FL_HEAP_UNIT == 0 &&
           (e == NULL || e->base >= fl_range_end(b));
}

/* False, and nothing is changed: parts of blocks were freed, and no block is left, or no
 * descriptor. */
static bool give(struct fl_heap *h, struct fl_range b)
{
    struct fl_extent *before = fl_tree_around(&h->free, b.base - 1);
    struct fl_extent *after = fl_tree_around(&h->free, fl_range_end(b));

    fl_assert(fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (h->s.blocks == 0 || (before == NULL && after == NULL && SLIST_EMPTY(&h->spare))) {
        return false;
    }
    fl_assert(h->s.used_bytes >= b.len);
    h->s.blocks--;
    h->s.frees++;
    h->s.used_bytes -= b.len;
    if (before != NULL) {
        b = (struct fl_range){before->base, before->len + b.len};
        drop(h, before);
    }
    if (after != NULL) {
        b.len += after->len;
        drop(h, after);
    }
    enter(h, b.base, b.len);
    return true;
}

int fl_heap_free(struct fl_heap *heap, void *block, size_t len)
{
    struct fl_range b = {(uintptr_t)block, units(len)};

    if (block == NULL) {
        return 0;
    }
    if (heap == NULL) {
        return -EINVAL;
    }
    int rc = fl_heap_lock();
    if (rc != 0) {
        return rc;
    }
    rc = is_block(heap, b) && give(heap, b) ? 0 : -EINVAL;
    fl_heap_unlock();
    return rc;
}

const char *fl_heap_check(const struct fl_heap *heap)
{
    struct fl_extent_tree *tree = (struct fl_extent_tree *)(uintptr_t)&heap->free;
    uintptr_t end = 0;
    size_t bytes = 0;

    for (struct fl_extent *e = fl_tree_lowest(tree); e != NULL; e = fl_tree_higher(e)) {
        if (e->len == 0 || (e->base | e->len) % FL_HEAP_UNIT != 0 || e->base <= end ||
            e->base < heap->data.all.base || e->base + e->len > fl_range_end(heap->data.all)) {
            return "H1";
        }
        end = e->base + e->len;
        bytes += e->len;
    }
    if (bytes + heap->s.used_bytes != heap->data.all.len) {
        return "H2";
    }
    size_t most = fl_min(heap->s.blocks + 1, fl_heap_most_free(heap->data.all.len));

    return heap->made >= most ? NULL : "H3";
}
