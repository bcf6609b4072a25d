/* Memory whose pages a device has, by their physical addresses. Included by region.h.
 *
 * Once a driver has registered a range (cuMemHostRegister, io_uring's buffers) its pages must
 * stay. What the kernel lets a process do to them all the same parts the two without a word:
 * after MADV_DONTNEED the CPU reads zeros where the device still writes to the old page. So the
 * state is one that nothing here ever takes anything from: PINNED is not LIVE, so no free,
 * realloc or cache finds it, and not FREE, so it is not purged, softened, moved, cleared or
 * trimmed; repair.c steps over it; preload/ refuses the program's calls that would take its
 * pages. For an extent that is divided (struct fl_inner) all of it holds, but its blocks come
 * and go as before.
 *
 * Prepared in the order that matters: huge-page advice, the device's node, populated, base pages
 * collapsed, fork; its taker registers it after that. A page that is pinned as a base
 * page stays one; a range with holes is refused, or filled with all other maps of the process
 * waiting; fork(2) copies what is pinned, a second a GiB, and splits the parent's huge pages for
 * good. */
#ifndef FL_REGION_PIN_H
#define FL_REGION_PIN_H

#include "region/state/config.h"

struct fl_region;
struct fl_extent;
struct fl_inner;

struct fl_pin {
    int node;         /* the kernel's number, of the node next to the device; -1: any */
    unsigned threads; /* that populate; 0: automatic */
    enum fl_pin_fork fork;
};

/* `*out` is an extent of `len` bytes, up to whole huge pages, PINNED and prepared. 0; -ENOMEM:
 * neither addresses nor memory; more than half of what is available is never taken. Its bytes
 * are anything. Threads: any.  Signals: not safe.  Cost: the kernel's clearing, beside what is
 * free or in reserve here. */
int fl_region_take_pinned(struct fl_region *r, size_t len, const struct fl_pin *how,
                          struct fl_extent **out);
/* No device has it any more: its memory is the region's again, free. */
void fl_region_give_pinned(struct fl_region *r, struct fl_extent *e);

/* `part` of a divided extent, whole huge pages, is populated and prepared, and all of the extent
 * is PINNED. 0; -EBUSY: it is already; -ENOMEM, with nothing changed but what is populated.
 * unpin takes the same part. Threads: one at a time for one `in`; no call shifts, fills or
 * empties it meanwhile. */
int fl_inner_pin(struct fl_region *r, struct fl_inner *in, struct fl_range part,
                 const struct fl_pin *how);
void fl_inner_unpin(struct fl_region *r, struct fl_inner *in, struct fl_range part);

/* Pages that come into `part` from now on come from `node`, by the kernel's number, while it has
 * any. 0; -EINVAL: there is no such node; -EPERM, -ENOSYS: refused. */
int fl_pin_bind(struct fl_range part, int node);
/* The same preparation of a map that is not the region's: advised, bound, populated, collapsed,
 * told of fork. 0; -ENOMEM. */
int fl_pin_prepare(struct fl_range part, const struct fl_pin *how, bool huge, bool by_touch);
/* Children have it again, as ever. */
void fl_pin_release(struct fl_range part);

/* Does any of `range`, which is anything, lie in what is PINNED? Lock-free.  Signals: safe.
 * Cost: a load where nothing is. */
bool fl_region_is_pinned(struct fl_region *r, struct fl_range range);

/* fl_region_fork_child: what is PINNED and not for children is addresses with nothing behind,
 * that are not handed out. */
void fl_pin_fork_child(struct fl_region *r);

#endif
