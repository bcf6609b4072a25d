/* Clears what holds anything, and leaves alone what was never touched. See clear.h. */
#include "pages/pages.h"

#include <errno.h>
#include <string.h>

/* As fl_sys.touched. No child of fork gets the descriptor. */
static int look(struct fl_pages *p, struct fl_range range, struct fl_range part[FL_TOUCHED_MOST])
{
    int n = -EBUSY;

    fl_assert(!fl_lock_is_held(FL_RANK_REGION, FL_SHARDS));
    if (fl_is_busy()) { /* a handler: whom it interrupted may hold the lock */
        return n;
    }
    fl_busy_begin();
    if (fl_lock_acquire_unless_forking(&p->asking)) {
        n = fl_sys.touched(range, part, FL_TOUCHED_MOST);
        fl_lock_release(&p->asking);
    }
    fl_busy_end();
    return n;
}

static size_t clear_all(struct fl_range range)
{
    if (range.len != 0) {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): ranges are memory */
        (void)fl_libc.memset((void *)range.base, 0, range.len);
    }
    return range.len;
}

static size_t clear_touched(struct fl_pages *p, struct fl_range range)
{
    struct fl_range part[FL_TOUCHED_MOST];
    size_t cleared = 0;
    int n = FL_TOUCHED_MOST;

    fl_assert((range.base | range.len) % fl_page.base == 0);
    while (n == FL_TOUCHED_MOST && range.len != 0) {
        uintptr_t end = fl_range_end(range);
        n = look(p, range, part);
        if (n < 0) { /* the kernel does not tell */
            return cleared + clear_all(range);
        }
        fl_assert(n <= FL_TOUCHED_MOST);
        for (int i = 0; i < n; i++) {
            fl_assert(part[i].base >= range.base && fl_range_end(part[i]) <= end);
            cleared += clear_all(part[i]);
            range.base = fl_range_end(part[i]);
        }
        range.len = end - range.base;
    }
    return cleared;
}

/* What is not there yet may be on its way: while pages move, they may come to a huge page of which
 * `range` has a part. The request that they are for has the other part. */
static struct fl_range settled_part(struct fl_range range)
{
    struct fl_range inner = fl_range_inner(range, fl_page.huge);

    return inner.len != 0 ? inner : (struct fl_range){range.base, 0};
}

size_t fl_clear_touched(struct fl_pages *p, struct fl_range range, bool coming)
{
    struct fl_range inner = range;

    if (range.len >= fl_clear_looked_at) {
        inner = coming ? settled_part(range) : range;
    } else {
        inner.len = 0;
    }
    fl_assert(inner.base >= range.base && fl_range_end(inner) <= fl_range_end(range));
    struct fl_range before = {range.base, inner.base - range.base};
    struct fl_range behind = {fl_range_end(inner), fl_range_end(range) - fl_range_end(inner)};
    return clear_all(before) + clear_touched(p, inner) + clear_all(behind);
}
