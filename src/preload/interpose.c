/* libc's allocation functions, each one comparison and one call. Interposed names exist here and in
 * operators.c alone.
 *
 * A small request costs three instructions over the next allocator, a foreign free five: the
 * threshold is 0 and the window empty until boot, so there is no "are we ready" on the way. */
#include "alloc/alloc.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

#define EXPORT __attribute__((visibility("default")))

__attribute__((constructor(102))) static void find_first(void)
{
    fl_find_first();
}

EXPORT void *malloc(size_t n)
{
    if (FL_LIKELY(n < fl_route.threshold)) {
        return fl_route.next.malloc(n);
    }
    return fl_malloc_large(n);
}

EXPORT void free(void *p)
{
    if (FL_LIKELY(!fl_is_ours(p))) {
        fl_route.next.free(p);
        return;
    }
    fl_free_ours(p);
}

/* Old programs' name for it. */
EXPORT void cfree(void *p) __attribute__((alias("free"), leaf, nothrow));

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
EXPORT void __libc_free(void *p);
EXPORT void __libc_free(void *p)
{
    if (fl_is_ours(p)) {
        fl_free_ours(p);
    } else {
        fl_route.next.libc_free(p);
    }
}

EXPORT void *__libc_realloc(void *p, size_t n);
EXPORT void *__libc_realloc(void *p, size_t n)
{
    return fl_libc_realloc(p, n);
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

EXPORT void *calloc(size_t count, size_t size)
{
    size_t n;

    if (FL_UNLIKELY(__builtin_mul_overflow(count, size, &n))) {
        errno = ENOMEM;
        return NULL;
    }
    if (FL_LIKELY(n < fl_route.threshold)) {
        return fl_route.next.calloc(count, size);
    }
    return fl_calloc_large(n);
}

EXPORT void *realloc(void *p, size_t n)
{
    if (FL_LIKELY(!fl_is_ours(p) && n < fl_route.threshold)) {
        return fl_route.next.realloc(p, n);
    }
    return fl_realloc_any(p, n);
}

EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
    size_t n;

    if (__builtin_mul_overflow(count, size, &n)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, n);
}

/* The next allocator judges what it serves, and every alignment that is no power of two. */
static inline bool is_for_us(size_t align, size_t n)
{
    if (FL_UNLIKELY(atomic_load_explicit(&fl_route.booted, memory_order_acquire) <
                    FL_BOOT_LOADED)) {
        fl_load();
    }
    return n >= fl_route.threshold && fl_is_pow2(align);
}

/* ENOMEM is in errno too, as glibc leaves it; else errno is kept. */
static FL_COLD int next_posix_memalign(void **out, size_t align, size_t n)
{
    int saved = errno;
    int rc = fl_is_pow2(align) && align >= sizeof(void *) ? ENOMEM : EINVAL;

    if (fl_route.next.posix_memalign != NULL) {
        rc = fl_route.next.posix_memalign(out, align, n);
    }
    errno = rc == ENOMEM ? ENOMEM : saved;
    return rc;
}

EXPORT int posix_memalign(void **out, size_t align, size_t n)
{
    if (FL_LIKELY(is_for_us(align, n) && align >= sizeof(void *))) {
        return fl_posix_memalign_large(out, align, n);
    }
    return next_posix_memalign(out, align, n);
}

EXPORT void *memalign(size_t align, size_t n)
{
    return is_for_us(align, n) ? fl_memalign_large(align, n)
                               : fl_next_aligned(fl_route.next.memalign, align, n);
}

EXPORT void *aligned_alloc(size_t align, size_t n)
{
    return is_for_us(align, n) ? fl_memalign_large(align, n)
                               : fl_next_aligned(fl_route.next.aligned_alloc, align, n);
}

EXPORT void *valloc(size_t n)
{
    return memalign(fl_page.base, n);
}

EXPORT void *pvalloc(size_t n)
{
    size_t whole = fl_align_up(n, fl_page.base);

    if (whole < n) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign(fl_page.base, whole);
}

static FL_COLD void check_and_free(const char *call, void *p, size_t align, size_t size)
{
    fl_harden_check(call, p, align, size);
    free(p);
}

EXPORT void free_sized(void *p, size_t size);
EXPORT void free_sized(void *p, size_t size)
{
    if (FL_UNLIKELY(fl_harden.check)) {
        check_and_free("free_sized", p, 1, size);
    } else {
        free(p);
    }
}

EXPORT void free_aligned_sized(void *p, size_t align, size_t size);
EXPORT void free_aligned_sized(void *p, size_t align, size_t size)
{
    if (FL_UNLIKELY(fl_harden.check)) {
        check_and_free("free_aligned_sized", p, align, size);
    } else {
        free(p);
    }
}

EXPORT size_t malloc_usable_size(void *p)
{
    fl_load();
    if (p == NULL) {
        return 0;
    }
    if (fl_is_ours(p)) {
        return fl_usable_ours(p);
    }
    return fl_route.next.usable_size != NULL ? fl_route.next.usable_size(p) : 0;
}

EXPORT int malloc_trim(size_t pad)
{
    fl_load();
    return fl_trim_call(pad);
}

EXPORT int mallopt(int param, int value)
{
    fl_load();
    if (param == M_MMAP_THRESHOLD || param == M_TRIM_THRESHOLD || param == M_TOP_PAD ||
        param == M_MMAP_MAX) {
        fl_runtime.tune_next = false; /* the program knows better */
    }
    if (param == M_TRIM_THRESHOLD) {
        fl_region_note_kept(fl_route.region, value < 0 ? SIZE_MAX : (size_t)value);
    }
    return fl_route.next.mallopt != NULL ? fl_route.next.mallopt(param, value) : 0;
}

/* Our blocks are told as mapped ones, which is what they are to glibc's words; what is free and
 * held as free memory of the heap. */
EXPORT struct mallinfo2 mallinfo2(void)
{
    struct mallinfo2 info = {.arena = 0};
    struct fl_stats_values v;

    fl_load();
    if (fl_route.next.mallinfo2 != NULL) {
        struct mallinfo2 (*next)(void);
        memcpy(&next, &fl_route.next.mallinfo2, sizeof next);
        info = next();
    }
    fl_read_stats(&v);
    info.hblks += v.live_extents;
    size_t free_inside = fl_min(v.cached_bytes + v.plan_free_bytes, v.in_use_bytes);
    size_t idle = free_inside + v.free_held_bytes + v.stock_bytes;
    info.hblkhd += v.in_use_bytes - free_inside;
    info.arena += idle;
    info.fordblks += idle;
    return info;
}

static int cut(size_t v)
{
    return (int)v; /* mallinfo(3): its fields are int and wrap */
}

EXPORT struct mallinfo mallinfo(void)
{
    struct mallinfo2 m = mallinfo2();

    return (struct mallinfo){cut(m.arena),    cut(m.ordblks), cut(m.smblks),  cut(m.hblks),
                             cut(m.hblkhd),   cut(m.usmblks), cut(m.fsmblks), cut(m.uordblks),
                             cut(m.fordblks), cut(m.keepcost)};
}

EXPORT void malloc_stats(void)
{
    enum { TABLE_BYTES = 8192 };
    static char text[TABLE_BYTES]; /* the caller's stack may be small. Lock: stderr's */
    struct fl_stats_values v;
    struct fl_residency_values there;
    int cancel;

    fl_load();
    if (fl_route.next.stats != NULL) {
        fl_route.next.stats();
    }
    fl_read_stats(&v);
    int rc = fl_read_residency(&there);
    /* As in glibc, where writing to stderr is no cancellation point here: it would stay locked. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    flockfile(stderr);
    struct fl_text t = fl_text_on(text, sizeof text);
    fl_stats_format_table(&v, 0, &t);
    if (rc == 0) {
        fl_stats_format_residency(&there, &t);
    }
    (void)fputs(text, stderr);
    funlockfile(stderr);
    (void)pthread_setcancelstate(cancel, NULL);
}

static void append_attribute(struct fl_text *t, const char *name, uint64_t value)
{
    fl_text_str(t, " ");
    fl_text_str(t, name);
    fl_text_str(t, "=\"");
    fl_text_u64(t, value);
    fl_text_str(t, "\"");
}

static void append_element(struct fl_text *t)
{
    struct fl_stats_values v;
    struct fl_residency_values there;

    fl_read_stats(&v);
    fl_text_str(t, "<faultless");
    append_attribute(t, "extents", v.live_extents);
    append_attribute(t, "in_use", v.in_use_bytes);
    append_attribute(t, "populated", v.populated_bytes);
    if (fl_read_residency(&there) == 0) {
        append_attribute(t, "live_resident", there.live_resident_bytes);
        append_attribute(t, "free_resident", there.free_resident_bytes);
        append_attribute(t, "stock_resident", there.stock_resident_bytes);
        append_attribute(t, "table_resident", there.table_resident_bytes);
        append_attribute(t, "unknown", there.unknown_bytes);
    }
    fl_text_str(t, "/>\n");
}

static int write_nexts(int options, FILE *out)
{
    int (*next)(int, FILE *);

    if (fl_route.next.info == NULL) {
        (void)fputs("<malloc version=\"1\">\n</malloc>\n", out);
        return 0;
    }
    memcpy(&next, &fl_route.next.info, sizeof next);
    return next(options, out);
}

/* The next allocator's document with our element before its end; a document of our own where it has
 * none. */
EXPORT int malloc_info(int options, FILE *out)
{
    enum { ELEMENT_BYTES = 512 };
    char element[ELEMENT_BYTES];
    struct fl_text t = fl_text_on(element, sizeof element);
    char *text = NULL;
    size_t len = 0;
    int rc = 0;

    fl_load();
    if (options != 0) {
        return EINVAL;
    }
    FILE *memory = open_memstream(&text, &len);
    if (memory == NULL) {
        return errno;
    }
    rc = write_nexts(options, memory);
    if (fclose(memory) == 0 && rc == 0) {
        append_element(&t);
        char *end = strstr(text, "</malloc>");
        int head = end != NULL ? (int)(end - text) : (int)len;
        pthread_cleanup_push(free, text); /* a cancellation point, as in glibc */
        (void)fprintf(out, "%.*s%s%s", head, text, element, end != NULL ? end : "");
        pthread_cleanup_pop(0);
    }
    free(text);
    return rc;
}
