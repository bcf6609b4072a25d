/* Arithmetic on address ranges. */
#include "base/base.h"

struct fl_range fl_range_inner(struct fl_range r, size_t align)
{
    uintptr_t first = fl_align_up(r.base, align);
    uintptr_t last = fl_align_down(fl_range_end(r), align);

    return (struct fl_range){first, last > first ? last - first : 0};
}
