/* Reserved address space, committed from the front as it is needed.
 *
 * A span starts as PROT_NONE, which no limit but RLIMIT_AS counts; commit makes a front part writable. So
 * overcommit_memory=2 and RLIMIT_DATA charge what is in use, not the whole span. Sources: mmap(2), mprotect(2). */
#include "core/core.h"

#include <errno.h>

/* Far above brk heaps and far below where the kernel places maps top-down: free unless somebody asked for it. */
static const uintptr_t quiet_addresses[] = {0x200000000000, 0x280000000000, 0x300000000000,
                                            0x180000000000};

static int reserve_unmapped(struct fl_vspace *v, size_t len, size_t align)
{
    for (size_t i = 0; i < sizeof quiet_addresses / sizeof quiet_addresses[0]; i++) {
        struct fl_range first = {fl_align_up(quiet_addresses[i], align), fl_page.base};
        if (fl_sys.map_at(first) == 0) {
            v->all = (struct fl_range){first.base, len};
            v->committed = first.len;
            return 0;
        }
    }
    return -ENOMEM;
}

int fl_vspace_reserve(struct fl_vspace *v, size_t len, size_t align, bool counted, const char *name)
{
    uintptr_t base;

    *v = (struct fl_vspace){.chunk = align, .name = name, .reserved = !counted};
    if (counted) {
        return reserve_unmapped(v, len, align);
    }
    int rc = fl_sys.reserve(0, len + align, &base);
    if (rc != 0) {
        return rc;
    }
    v->all = (struct fl_range){fl_align_up(base, align), len};
    struct fl_range head = {base, v->all.base - base};
    struct fl_range tail = {fl_range_end(v->all), align - head.len};
    if (head.len != 0) {
        (void)fl_sys.unreserve(head);
    }
    if (tail.len != 0) {
        (void)fl_sys.unreserve(tail);
    }
    return 0;
}

static int commit_exact(struct fl_vspace *v, size_t upto)
{
    struct fl_range more = {v->all.base + v->committed, upto - v->committed};
    int rc = v->reserved ? fl_sys.commit(more) : fl_sys.map_at(more);

    if (rc != 0) {
        return -ENOMEM;
    }
    v->committed = upto;
    (void)fl_sys.advise(more, v->huge ? FL_ADVICE_HUGE : FL_ADVICE_NO_HUGE);
    (void)fl_sys.name(more, v->name);
    return 0;
}

int fl_vspace_commit(struct fl_vspace *v, size_t upto)
{
    if (upto <= v->committed) {
        return 0;
    }
    if (upto > v->all.len) {
        return -ENOMEM;
    }
    size_t wanted = fl_min(fl_align_up(upto, v->chunk), v->all.len);
    if (commit_exact(v, wanted) == 0) {
        return 0;
    }
    return wanted > upto ? commit_exact(v, fl_align_up(upto, fl_page.base)) : -ENOMEM;
}
