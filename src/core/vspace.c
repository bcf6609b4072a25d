/* A span of addresses that is ours, and the parts of it that are mapped.
 *
 * Usually nothing is mapped where nothing is in use: the span lies where the kernel places no map
 * by itself, and each part is mapped when it is wanted (MAP_FIXED_NOREPLACE, Linux 4.17) and
 * unmapped when it is given back. So RLIMIT_AS, RLIMIT_DATA, overcommit_memory=2, mlockall and a
 * setrlimit at run time count what is held and no more. Where those addresses are not to be had,
 * the span is reserved as PROT_NONE and parts of it are made writable. Source: mmap(2). */
#include "core/core.h"

#include <errno.h>

/* Small: a program that calls mlockall under the usual 8 MiB of RLIMIT_MEMLOCK counts it too. */
static const size_t grow_chunk = (size_t)256 << 10;

static int claim_unmapped(struct fl_vspace *v, size_t len, uintptr_t at)
{
    struct fl_range probe = {at, fl_page.base};
    int rc = fl_sys.map_at(probe);

    if (rc != 0) {
        return rc;
    }
    (void)fl_sys.unmap(probe);
    v->all = (struct fl_range){at, len};
    return 0;
}

static int reserve_mapped(struct fl_vspace *v, size_t len, size_t align)
{
    uintptr_t base;
    int rc = fl_sys.reserve(len + align, &base);

    if (rc != 0) {
        return rc;
    }
    v->all = (struct fl_range){fl_align_up(base, align), len};
    struct fl_range head = {base, v->all.base - base};
    struct fl_range tail = {fl_range_end(v->all), align - head.len};
    if (head.len != 0) {
        (void)fl_sys.unmap(head);
    }
    if (tail.len != 0) {
        (void)fl_sys.unmap(tail);
    }
    return 0;
}

int fl_vspace_claim(struct fl_vspace *v, size_t len, size_t align, uintptr_t at, const char *name)
{
    fl_assert(fl_is_pow2(align) && (at & (align - 1)) == 0);
    *v = (struct fl_vspace){.name = name, .reserved = at == 0};
    return at != 0 ? claim_unmapped(v, len, at) : reserve_mapped(v, len, align);
}

void fl_vspace_release(struct fl_vspace *v)
{
    if (v->reserved) {
        (void)fl_sys.unmap(v->all);
    }
    v->all.len = 0;
}

int fl_vspace_commit(struct fl_vspace *v, struct fl_range part, bool huge)
{
    fl_assert(part.len != 0 && fl_range_common(part, v->all).len == part.len);
    int rc = v->reserved ? fl_sys.commit(part) : fl_sys.map_at(part);

    if (rc != 0) {
        return rc == -EEXIST ? rc : -ENOMEM;
    }
    (void)fl_sys.advise(part, huge ? FL_ADVICE_HUGE : FL_ADVICE_NO_HUGE);
    if (!atomic_load_explicit(&v->unnamed, memory_order_relaxed) &&
        fl_sys.name(part, v->name) != 0) {
        atomic_store_explicit(&v->unnamed, true, memory_order_relaxed);
    }
    if (v->mapped != NULL) {
        v->mapped(part);
    }
    return 0;
}

int fl_vspace_decommit(struct fl_vspace *v, struct fl_range part)
{
    fl_assert(part.len != 0 && fl_range_common(part, v->all).len == part.len);
    return v->reserved ? fl_sys.decommit(part) : fl_sys.unmap(part);
}

int fl_vspace_grow(struct fl_vspace *v, size_t upto)
{
    size_t now = atomic_load_explicit(&v->grown, memory_order_relaxed);

    if (upto <= now) {
        return 0;
    }
    if (upto > v->all.len) {
        return -ENOMEM;
    }
    size_t exact = fl_align_up(upto, fl_page.base);
    size_t ample = fl_min(fl_align_up(upto, grow_chunk), v->all.len);
    size_t end = ample;

    fl_assert(exact <= end && end <= fl_align_up(v->all.len, fl_page.base));
    fl_lock_permit_calls(true); /* a table that others read grows under its lock */
    int rc = fl_vspace_commit(v, (struct fl_range){v->all.base + now, ample - now}, v->huge);
    if (rc != 0 && exact < ample) {
        end = exact;
        rc = fl_vspace_commit(v, (struct fl_range){v->all.base + now, exact - now}, v->huge);
    }
    fl_lock_permit_calls(false);
    if (rc == 0) {
        /* release: a thread that reads the new bound may read what lies below it */
        atomic_store_explicit(&v->grown, end, memory_order_release);
    }
    return rc;
}
