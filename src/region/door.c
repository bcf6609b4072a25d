/* Where requests come in. */
#include "region/serve/take.h"
#include "region/state/counts.h"

struct fl_extent *fl_region_take(struct fl_region *r, struct fl_cache *own, size_t len,
                                 size_t align, bool zero)
{
    if (len > r->space.window.all.len || align > r->space.window.all.len ||
        fl_region_is_absurd(r, len + align - fl_page.base)) { /* as glibc maps it, with the lead */
        return NULL;
    }
    if (FL_UNLIKELY(r->config.hugetlb_from != 0 && len >= r->config.hugetlb_from)) {
        struct fl_extent *on_hugetlb = fl_hugetlb_take(r, len, align);
        if (on_hugetlb != NULL) {
            return on_hugetlb;
        }
    }
    struct fl_extent *e = zero ? NULL : fl_take_plain(r, own, len, align);

    return e != NULL ? e : fl_take_long(r, own, len, align, zero);
}
