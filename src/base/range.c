/* Arithmetic on address ranges. */
#include "base/base.h"

struct fl_range fl_range_inner(struct fl_range r, size_t align)
{
    uintptr_t first = fl_align_up(r.base, align);
    uintptr_t last = fl_align_down(fl_range_end(r), align);

    return (struct fl_range){first, last > first ? last - first : 0};
}

struct fl_range fl_range_common(struct fl_range a, struct fl_range b)
{
    uintptr_t base = fl_max(a.base, b.base), end = fl_min(fl_range_end(a), fl_range_end(b));

    return (struct fl_range){base, end > base ? end - base : 0};
}

struct fl_range fl_range_join(struct fl_range a, struct fl_range b)
{
    uintptr_t base = fl_min(a.base, b.base), end = fl_max(fl_range_end(a), fl_range_end(b));

    if (a.len != 0 && b.len != 0 && end - base <= a.len + b.len) {
        return (struct fl_range){base, end - base};
    }
    return a.len >= b.len ? a : b;
}
