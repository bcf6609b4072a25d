/* Heaps begin, end, and say what they hold. See heap.h. */
#include "heap/internal.h"

#include <errno.h>
#include <string.h>

static struct fl_lock lock; /* of all heaps. Rank RUNTIME: before the region's */
static bool is_lost;        /* a fork's child: another thread was amid a change. Written at fork */

int fl_heap_lock(void)
{
    if (is_lost) {
        return -ECHILD;
    }
    fl_region_enter();
    fl_lock_acquire(&lock);
    return 0;
}

void fl_heap_unlock(void)
{
    fl_assert(fl_lock_is_held(FL_RANK_RUNTIME, 1));
    fl_lock_release(&lock);
    fl_region_leave();
}

/* ---- options ---- */

/* What the caller's program knows of, and the defaults for the rest: it may be older than this, or
 * newer; then what is unknown here must be 0. */
static int read_options(const struct fl_heap_options *from, struct fl_heap_options *to)
{
    const unsigned char *raw = (const unsigned char *)from;

    if (from == NULL || from->size < offsetof(struct fl_heap_options, kind)) {
        return -EINVAL;
    }
    for (size_t i = sizeof *to; i < from->size; i++) {
        if (raw[i] != 0) {
            return -E2BIG;
        }
    }
    fl_heap_defaults(to);
    memcpy(to, from, fl_min(from->size, sizeof *to));
    to->size = sizeof *to;
    return 0;
}

/* The kernel's rule for names of maps. */
static bool is_name(const char *name)
{
    static const size_t longest = FL_HEAP_NAME - sizeof "faultless:heap:";
    size_t len = strlen(name);

    for (const char *c = name; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~' || strchr("\\$`[]", *c) != NULL) {
            return false;
        }
    }
    return len != 0 && len <= longest;
}

static int check_options(struct fl_heap_options *o)
{
    o->name = o->name != NULL ? o->name : "heap";
    if (o->bytes == 0 || o->bytes > SIZE_MAX / 4 || (unsigned)o->kind > FL_HEAP_BASE ||
        o->node < -1 || o->node >= FL_NODE_IDS || !is_name(o->name)) {
        return -EINVAL;
    }
    o->bytes = fl_align_up(o->bytes, fl_page.huge);
    return 0;
}

/* ---- memory ---- */

int fl_heap_make_descriptors(struct fl_heap *h, size_t n)
{
    struct fl_extent *all =
        (void *)(h->records.all.base + fl_align_up(sizeof *h, FL_CACHE_LINE)); /* NOLINT */
    size_t want = fl_min(n, fl_heap_most_free(h->data.all.len));

    if (want <= h->made) {
        return 0;
    }
    fl_assert((uintptr_t)&all[want] <= fl_range_end(h->records.all));
    int rc = fl_vspace_grow(&h->records, (uintptr_t)&all[want] - h->records.all.base);
    for (; rc == 0 && h->made < want; h->made++) {
        SLIST_INSERT_HEAD(&h->spare, &all[h->made], spare);
    }
    return rc;
}

/* The span that holds the heap itself, and descriptors for as many extents as can be free. */
static int claim_records(size_t bytes, struct fl_heap **out)
{
    struct fl_vspace v;
    size_t most = fl_heap_most_free(bytes) * sizeof(struct fl_extent);
    size_t len = fl_align_up(sizeof(struct fl_heap) + FL_CACHE_LINE + most, fl_page.base);

    if (fl_vspace_claim(&v, len, fl_page.base, 0, "faultless:heaps") != 0) {
        return -ENOMEM;
    }
    if (fl_vspace_grow(&v, sizeof(struct fl_heap)) != 0) {
        fl_vspace_release(&v);
        return -ENOMEM;
    }
    struct fl_heap *h = (void *)v.all.base; /* NOLINT(performance-no-int-to-ptr) */
    h->records = v;
    *out = h;
    return 0;
}

/* `scratch`: zeroed. */
static bool is_too_much(size_t len, struct fl_memory_scratch *scratch)
{
    struct fl_memory m = {.headroom = 0};

    fl_memory_look(&m, scratch);
    return len > m.headroom;
}

static int fill(struct fl_range all, bool huge)
{
    const struct fl_pin how = {.node = -1, .fork = FL_PIN_COPIED};
    struct fl_memory_scratch scratch = {.ranks = 0};

    return is_too_much(all.len, &scratch) ? -ENOMEM : fl_pin_prepare(all, &how, huge, false);
}

static int claim_data(struct fl_heap *h, const struct fl_heap_options *o)
{
    bool huge = o->kind != FL_HEAP_BASE && fl_page.thp;
    struct fl_text t = fl_text_on(h->name, sizeof h->name);

    fl_text_str(&t, "faultless:heap:");
    fl_text_str(&t, o->name);
    if (fl_vspace_claim(&h->data, o->bytes, fl_page.huge, 0, h->name) != 0) {
        return -ENOMEM;
    }
    int rc = fl_vspace_commit(&h->data, h->data.all, huge);
    if (rc == 0 && o->node >= 0) {
        rc = fl_pin_bind(h->data.all, o->node);
    }
    if (rc == 0 && o->kind == FL_HEAP_PREFAULTED) {
        rc = fill(h->data.all, huge);
    }
    if (rc != 0) {
        fl_vspace_release(&h->data);
    }
    return rc;
}

static void release_records(struct fl_heap *h)
{
    struct fl_vspace v = h->records; /* `h` lies in it */

    fl_vspace_release(&v);
}

int fl_heap_make(const struct fl_heap_options *o, struct fl_heap **out)
{
    struct fl_heap_options all;
    struct fl_heap *h;
    int rc = out != NULL ? read_options(o, &all) : -EINVAL;

    rc = rc == 0 ? check_options(&all) : rc;
    rc = rc == 0 ? claim_records(all.bytes, &h) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = claim_data(h, &all);
    if (rc == 0) {
        rc = fl_heap_make_descriptors(h, 1);
        if (rc != 0) {
            fl_vspace_release(&h->data);
        }
    }
    if (rc != 0) {
        release_records(h);
        return rc;
    }
    struct fl_extent *e = SLIST_FIRST(&h->spare);
    SLIST_REMOVE_HEAD(&h->spare, spare);
    e->base = h->data.all.base;
    e->len = h->data.all.len;
    fl_tree_insert(&h->free, e);
    h->s.bytes = all.bytes;
    *out = h;
    return 0;
}

int fl_heap_destroy(struct fl_heap *heap)
{
    if (heap == NULL) {
        return -EINVAL;
    }
    int rc = fl_heap_lock();
    if (rc != 0) {
        return rc;
    }
    rc = heap->s.blocks != 0 ? -EBUSY : 0;
    fl_heap_unlock();
    if (rc == 0) {
        fl_vspace_release(&heap->data);
        release_records(heap);
    }
    return rc;
}

int fl_heap_stats_read(struct fl_heap *heap, struct fl_heap_stats *out)
{
    if (heap == NULL || out == NULL || out->size < 2 * sizeof out->size) {
        return -EINVAL;
    }
    int rc = fl_heap_lock();
    if (rc != 0) {
        return rc;
    }
    struct fl_heap_stats s = heap->s;
    const struct fl_extent *top = RB_ROOT(&heap->free);
    s.longest_bytes = top != NULL ? top->longest : 0;
    fl_heap_unlock();
    size_t resident;
    s.resident_bytes = fl_sys.present(heap->data.all, &resident) == 0 ? resident : UINT64_MAX;
    s.size = out->size;
    memset(out, 0, s.size);
    memcpy(out, &s, fl_min(s.size, sizeof s));
    return 0;
}

/* ---- fork ---- */

struct fl_lock *fl_heap_fork_word(void)
{
    return &lock;
}

void fl_heap_fork_lock(void)
{
    fl_lock_acquire(&lock);
    fl_lock_hold_for_fork(&lock);
}

void fl_heap_fork_parent(void)
{
    fl_lock_release_in_parent(&lock);
}

void fl_heap_fork_child(bool held)
{
    is_lost = !(held && fl_lock_release_in_child(&lock)) || is_lost;
}
