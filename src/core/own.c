/* Memory of the library's own, in powers of two of base pages, from a span of addresses. Few calls,
 * none of them on a request's way; what comes back is unmapped, and only its addresses are kept.
 * The last ones of the smaller sizes keep their pages: what comes and goes together takes no fault.
 *
 * A place of `kept` changes by one exchange, so no lock is taken, and a child of fork finds all of
 * it whole: what another thread was at is lost to it, and no more. */
#include "core/core.h"

#include <string.h>

enum { WARM_CLASSES = 6 /* up to 128 KiB */ };
static const size_t span_len = (size_t)64 << 30;

void fl_own_claim(struct fl_own_memory *o, uintptr_t below, const char *name,
                  void (*mapped)(struct fl_range part))
{
    size_t len = below != 0 ? span_len : span_len >> 4;

    fl_assert(below == 0 || below > len);
    if (!o->asked) {
        o->asked = true;
        (void)fl_vspace_claim(&o->span, len, fl_page.huge, below != 0 ? below - len : 0, name);
        o->span.mapped = mapped;
    }
}

/* log2 of the base pages that `len` bytes take. */
static unsigned class_of(size_t len)
{
    size_t pages = (len + fl_page.base - 1) >> fl_page.shift;

    return pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(pages - 1);
}

/* 0: there is none. */
static uintptr_t take_kept(struct fl_own_memory *o, unsigned k, bool *out_warm)
{
    uintptr_t p = 0;

    fl_assert(k < FL_OWN_CLASSES);
    for (unsigned i = 0; i < FL_OWN_KEPT && p == 0; i++) {
        _Atomic uintptr_t *at = &o->kept[k][i];
        p = atomic_load_explicit(at, memory_order_relaxed) != 0 ? atomic_exchange(at, 0) : 0;
        *out_warm = i < FL_OWN_WARM;
    }
    return p;
}

/* In one of the places from `first` up to `end`. False: there is no room. */
static bool keep(struct fl_own_memory *o, unsigned k, unsigned first, unsigned end, uintptr_t p)
{
    bool kept = false;

    fl_assert(k < FL_OWN_CLASSES && first < end && end <= FL_OWN_KEPT && p != 0);
    for (unsigned i = first; i < end && !kept; i++) {
        uintptr_t none = 0;
        kept = atomic_compare_exchange_strong(&o->kept[k][i], &none, p);
    }
    return kept;
}

/* Addresses that were never in use, from the span's first `most` bytes; 0: there are none. */
static uintptr_t take_fresh(struct fl_own_memory *o, size_t len, size_t most)
{
    size_t at = atomic_load(&o->used);

    fl_assert(len != 0 && len % fl_page.base == 0);
    do {
        if (at > most || len > most - at) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&o->used, &at, at + len));
    return o->span.all.base + at;
}

uintptr_t fl_own_reserve(struct fl_own_memory *o, size_t len)
{
    return take_fresh(o, len, o->span.all.len / 2);
}

bool fl_own_commit(struct fl_own_memory *o, struct fl_range part)
{
    fl_assert(fl_range_common(part, o->span.all).len == part.len);
    bool done = fl_vspace_commit(&o->span, part, false) == 0;

    atomic_fetch_add_explicit(&o->mapped, done ? part.len : 0, memory_order_relaxed);
    return done;
}

void *fl_own_map(struct fl_own_memory *o, size_t len)
{
    unsigned k = class_of(len);
    bool warm = false;

    if (k >= FL_OWN_CLASSES) {
        return NULL;
    }
    uintptr_t kept = take_kept(o, k, &warm);
    struct fl_range part = {kept, fl_page.base << k};
    part.base = kept != 0 ? kept : take_fresh(o, part.len, o->span.all.len);
    void *p = (void *)part.base; /* NOLINT(performance-no-int-to-ptr) */
    if (kept != 0 && warm) {
        return memset(p, 0, part.len);
    }
    if (part.base == 0) {
        return NULL;
    }
    if (!fl_own_commit(o, part)) {
        (void)keep(o, k, FL_OWN_WARM, FL_OWN_KEPT, part.base);
        return NULL;
    }
    return p;
}

void fl_own_unmap(struct fl_own_memory *o, void *p, size_t len)
{
    unsigned k = class_of(len);
    struct fl_range part = {(uintptr_t)p, fl_page.base << k};

    if (p == NULL || (k < WARM_CLASSES && keep(o, k, 0, FL_OWN_WARM, part.base))) {
        return;
    }
    fl_assert(fl_range_common(part, o->span.all).len == part.len);
    if (fl_vspace_decommit(&o->span, part) == 0) {
        atomic_fetch_sub_explicit(&o->mapped, part.len, memory_order_relaxed);
        (void)keep(o, k, FL_OWN_WARM, FL_OWN_KEPT, part.base);
    }
}
