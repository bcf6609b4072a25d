/* Memory of the planner's own: a span beside the window's, given out in powers of two of base
 * pages. Few calls, none of them on a request's way; what comes back is unmapped, and only its
 * addresses are kept. */
#include "plan/context.h"

#include <string.h>

enum { CLASSES = 26, KEPT = 64, WARM_CLASSES = 6 /* up to 128 KiB */, WARM = 3 };
static const size_t span_len = (size_t)64 << 30;

static struct {
    struct fl_vspace span;
    bool claimed, refused;
    size_t used;           /* bytes from the span's start */
    _Atomic size_t mapped; /* bytes of these. Relaxed: a statistic */
    /* What came back, by class. The last ones of the smaller classes keep their pages: layouts and
     * what they are packed with come and go together, and take no fault. */
    struct addresses {
        uintptr_t warm[WARM], cold[KEPT];
        unsigned nwarm, ncold;
    } class[CLASSES];
} memory; /* Lock: plan */

static bool claim_span(void)
{
    const struct fl_region *r = fl_plan.region;
    uintptr_t below = r->space.window.reserved ? 0 : r->space.window.all.base - span_len;

    if (!memory.claimed && !memory.refused) {
        memory.claimed = fl_vspace_claim(&memory.span, below != 0 ? span_len : span_len >> 4,
                                         fl_page.huge, below, "faultless:plan") == 0;
        memory.refused = !memory.claimed;
        memory.span.mapped = r->zones.placing.mapped_own;
    }
    return memory.claimed;
}

/* log2 of the base pages that `len` bytes take. */
static unsigned class_of(size_t len)
{
    size_t pages = (len + fl_page.base - 1) >> fl_page.shift;

    return pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(pages - 1);
}

struct piece {
    struct fl_range part; /* len 0: none */
    bool warm;            /* it has pages, as they were left */
};

/* Lock: plan. */
static struct piece take(size_t len)
{
    unsigned k = class_of(len);
    struct piece p = {.part.len = k < CLASSES ? fl_page.base << k : 0};

    if (p.part.len == 0 || !claim_span()) {
        return (struct piece){.warm = false};
    }
    struct addresses *of = &memory.class[k];
    if (of->nwarm != 0) {
        p.part.base = of->warm[--of->nwarm];
        p.warm = true;
    } else if (of->ncold != 0) {
        p.part.base = of->cold[--of->ncold];
    } else if (p.part.len <= memory.span.all.len - memory.used) {
        p.part.base = memory.span.all.base + memory.used;
        memory.used += p.part.len;
    } else {
        p.part.len = 0;
    }
    return p;
}

static void *clear(struct piece p)
{
    void *at = (void *)p.part.base; /* NOLINT(performance-no-int-to-ptr) */

    if (p.warm) {
        return memset(at, 0, p.part.len);
    }
    if (p.part.len == 0 || fl_vspace_commit(&memory.span, p.part, false) != 0) {
        return NULL;
    }
    atomic_fetch_add_explicit(&memory.mapped, p.part.len, memory_order_relaxed);
    return at;
}

/* Lock: plan. False: it is to be unmapped. */
static bool keep_warm(uintptr_t p, unsigned k)
{
    struct addresses *of = &memory.class[k];

    if (k >= WARM_CLASSES || of->nwarm == WARM) {
        return false;
    }
    of->warm[of->nwarm++] = p;
    return true;
}

static bool decommit(uintptr_t p, unsigned k)
{
    struct fl_range part = {p, fl_page.base << k};
    bool gone = fl_vspace_decommit(&memory.span, part) == 0;

    atomic_fetch_sub_explicit(&memory.mapped, gone ? part.len : 0, memory_order_relaxed);
    return gone;
}

/* Lock: plan. */
static void keep_cold(uintptr_t p, unsigned k)
{
    struct addresses *of = &memory.class[k];

    if (of->ncold < KEPT) {
        of->cold[of->ncold++] = p;
    }
}

void *fl_plan_map(size_t len)
{
    return clear(take(len));
}

/* Half of the span is left for what comes and goes. */
uintptr_t fl_plan_reserve(size_t len)
{
    size_t at = memory.used;

    if (!claim_span() || len > memory.span.all.len / 2 || at > memory.span.all.len / 2 - len) {
        return 0;
    }
    memory.used += len;
    return memory.span.all.base + at;
}

bool fl_plan_commit(struct fl_range part)
{
    return clear((struct piece){.part = part}) != NULL;
}

void fl_plan_unmap(uintptr_t p, size_t len)
{
    unsigned k = class_of(len);

    if (p != 0 && !keep_warm(p, k) && decommit(p, k)) {
        keep_cold(p, k);
    }
}

/* A thread that is held up in a system call holds no lock. */
void *fl_plan_map_locked(size_t len)
{
    fl_plan_lock();
    struct piece p = take(len);
    fl_plan_unlock();
    return clear(p);
}

void fl_plan_unmap_locked(uintptr_t p, size_t len)
{
    unsigned k = class_of(len);

    fl_plan_lock();
    bool done = p == 0 || keep_warm(p, k);
    fl_plan_unlock();
    if (!done && decommit(p, k)) {
        fl_plan_lock();
        keep_cold(p, k);
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
