/* Memory of the planner's own: a span beside the window's, given out in powers of two of base pages. Few calls, none of them on a
 * request's way; what comes back is unmapped, and only its addresses are kept. */
#include "plan/internal.h"

#include <string.h>

enum { CLASSES = 26, KEPT = 64, WARM_CLASSES = 6 /* up to 128 KiB */, WARM = 3 };
static const size_t span_len = (size_t)64 << 30;

static struct {
    struct fl_vspace span;
    bool claimed, refused;
    size_t used;           /* bytes from the span's start */
    _Atomic size_t mapped; /* bytes of these. Relaxed: a statistic */
    uintptr_t kept[CLASSES][KEPT];
    unsigned nkept[CLASSES];
    /* The last ones of each that came back, with their pages: a layout that serves, one that is made
     * and one that is searched for come and go together. 0: none. */
    uintptr_t warm[WARM_CLASSES][WARM];
} memory; /* Lock: plan */

static bool claim_span(void)
{
    const struct fl_region *r = fl_plan.region;
    uintptr_t below = r->window.reserved ? 0 : r->window.all.base - span_len;

    if (!memory.claimed && !memory.refused) {
        memory.claimed = fl_vspace_claim(&memory.span, below != 0 ? span_len : span_len >> 4,
                                         fl_page.huge, below, "faultless:plan") == 0;
        memory.refused = !memory.claimed;
        memory.span.mapped = r->placing.mapped_own;
    }
    return memory.claimed;
}

/* log2 of the base pages that `len` bytes take. */
static unsigned class_of(size_t len)
{
    size_t pages = (len + fl_page.base - 1) >> fl_page.shift;

    return pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(pages - 1);
}

/* Addresses for `len` bytes. Lock: plan. */
static struct fl_range take_addresses(size_t len)
{
    unsigned k = class_of(len);
    struct fl_range part = {0, k < CLASSES ? fl_page.base << k : 0};

    if (part.len == 0 || !claim_span()) {
        return (struct fl_range){0, 0};
    }
    if (memory.nkept[k] != 0) {
        part.base = memory.kept[k][--memory.nkept[k]];
    } else if (part.len <= memory.span.all.len - memory.used) {
        part.base = memory.span.all.base + memory.used;
        memory.used += part.len;
    } else {
        part.len = 0;
    }
    return part;
}

static void *commit(struct fl_range part)
{
    if (part.len == 0 || fl_vspace_commit(&memory.span, part, false) != 0) {
        return NULL;
    }
    atomic_fetch_add_explicit(&memory.mapped, part.len, memory_order_relaxed);
    return (void *)part.base; /* NOLINT(performance-no-int-to-ptr) */
}

static bool decommit(struct fl_range part)
{
    bool gone = fl_vspace_decommit(&memory.span, part) == 0;

    atomic_fetch_sub_explicit(&memory.mapped, gone ? part.len : 0, memory_order_relaxed);
    return gone;
}

static struct fl_range range_of(uintptr_t p, size_t len)
{
    return (struct fl_range){p, fl_page.base << class_of(len)};
}

/* Lock: plan. */
static void keep_addresses(struct fl_range part)
{
    unsigned k = class_of(part.len);

    if (memory.nkept[k] < KEPT) {
        memory.kept[k][memory.nkept[k]++] = part.base;
    }
}

/* A place of the class that has a block, or one that is empty; NULL: there is none. Lock: plan. */
static uintptr_t *warm_place(size_t len, bool with_block)
{
    unsigned k = class_of(len);

    for (unsigned i = 0; k < WARM_CLASSES && i < WARM; i++) {
        if ((memory.warm[k][i] != 0) == with_block) {
            return &memory.warm[k][i];
        }
    }
    return NULL;
}

/* What comes and goes with each layout takes no fault. Lock: plan. NULL: there is none. */
static void *take_warm(size_t len)
{
    uintptr_t *place = warm_place(len, true), p = place != NULL ? *place : 0;

    if (place != NULL) {
        *place = 0;
    }
    return (void *)p; /* NOLINT(performance-no-int-to-ptr) */
}

/* Lock: plan. False: it is to be unmapped. */
static bool keep_warm(struct fl_range part)
{
    uintptr_t *place = part.base != 0 ? warm_place(part.len, false) : NULL;

    if (place != NULL) {
        *place = part.base;
    }
    return place != NULL;
}

static void *clear(void *warm, size_t len)
{
    return memset(warm, 0, fl_page.base << class_of(len));
}

void *fl_plan_map(size_t len)
{
    void *warm = take_warm(len);

    return warm != NULL ? clear(warm, len) : commit(take_addresses(len));
}

void fl_plan_unmap(uintptr_t p, size_t len)
{
    struct fl_range part = range_of(p, len);

    if (!keep_warm(part) && p != 0 && decommit(part)) {
        keep_addresses(part);
    }
}

/* Whoever is held up in a system call holds no lock. */
void *fl_plan_map_locked(size_t len)
{
    fl_plan_lock();
    void *warm = take_warm(len);
    struct fl_range part = warm == NULL ? take_addresses(len) : (struct fl_range){0, 0};
    fl_plan_unlock();
    return warm != NULL ? clear(warm, len) : commit(part);
}

void fl_plan_unmap_locked(uintptr_t p, size_t len)
{
    struct fl_range part = range_of(p, len);

    fl_plan_lock();
    bool keeps = keep_warm(part);
    fl_plan_unlock();
    if (!keeps && p != 0 && decommit(part)) {
        fl_plan_lock();
        keep_addresses(part);
        fl_plan_unlock();
    }
}

struct fl_range fl_plan_memory(size_t *out_mapped)
{
    fl_plan_lock();
    struct fl_range used = {memory.span.all.base, memory.used};
    fl_plan_unlock();
    *out_mapped = atomic_load_explicit(&memory.mapped, memory_order_relaxed);
    return used;
}
