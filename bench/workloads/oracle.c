/* oracle.so: the upper bound of what keeping memory can win, not an allocator to ship. Preloaded,
 * it caches every block of 1 MiB and more for ever, in units of one huge page, populated when first
 * made.
 * Reuse: exact length, else up to an eighth larger. What is smaller goes to glibc, told to keep it
 * too.
 *
 * ORACLE_MIN=bytes (default 1 MiB); ORACLE_4K=1: no huge pages; ORACLE_COLOUR=1: blocks start at
 * different offsets. State: the tables below. Lock: lock.
 * O1: len[i] != 0 exactly when a block starts at unit i.  O2: a block is on one free list or in
 * use. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FL_UNIT = 2 << 20, FL_UNITS = 1 << 16, FL_COLOUR_SLACK = 65536 }; /* 128 GiB of addresses */

void *__libc_malloc(size_t len);
void *__libc_calloc(size_t count, size_t len);
void *__libc_realloc(void *base, size_t len);
void *__libc_memalign(size_t align, size_t len);
void __libc_free(void *base);

static char *window;
static uint32_t used;
static uint32_t len_units[FL_UNITS];
static uint32_t next_free[FL_UNITS];
static uint32_t first_free[FL_UNITS]; /* by length */
static uint32_t offset[FL_UNITS];
static size_t min_len = 1 << 20;
static bool small_pages;
static bool colour;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void)
{
    const char *text = getenv("ORACLE_MIN");
    min_len = text != NULL ? strtoull(text, NULL, 0) : min_len;
    small_pages = getenv("ORACLE_4K") != NULL;
    colour = getenv("ORACLE_COLOUR") != NULL;
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    char *base = mmap(NULL, (size_t)FL_UNIT * (FL_UNITS + 1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return;
    }
    base += (FL_UNIT - (uintptr_t)base % FL_UNIT) % FL_UNIT;
    (void)madvise(base, (size_t)FL_UNIT * FL_UNITS, small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    used = 1; /* unit 0 stays free: index 0 ends a list */
    window = base;
}

static bool is_ours(const void *base)
{
    return window != NULL && (const char *)base >= window &&
           (const char *)base < window + (size_t)FL_UNIT * FL_UNITS;
}

static uint32_t unit_of(const void *base)
{
    return (uint32_t)(((const char *)base - window) / FL_UNIT);
}

/* Take a block of `units` off a list, or new units. Returns 0 when there is no room. Lock held. */
static uint32_t take(uint32_t units, bool *is_fresh)
{
    *is_fresh = false;
    for (uint32_t k = units; k <= units + units / 8 && k < FL_UNITS; k++) {
        if (first_free[k] != 0) {
            uint32_t i = first_free[k];
            first_free[k] = next_free[i];
            return i;
        }
    }
    if (used + units > FL_UNITS) {
        return 0;
    }
    uint32_t i = used;
    used += units;
    len_units[i] = units;
    *is_fresh = true;
    return i;
}

static void *get_large(size_t align, size_t len, bool *is_fresh)
{
    static uint32_t turn;
    size_t slack = colour && align <= 4096 ? FL_COLOUR_SLACK : 0;
    if (window == NULL || align > FL_UNIT || len > (size_t)FL_UNIT * (FL_UNITS - 2)) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    uint32_t i = take((uint32_t)((len + slack + FL_UNIT - 1) / FL_UNIT), is_fresh);
    if (i != 0 && slack != 0) {
        offset[i] = (turn++ % 15) * 4352 & ~(uint32_t)(align < 64 ? 63 : align - 1);
    }
    pthread_mutex_unlock(&lock);
    if (i == 0) {
        return NULL;
    }
    char *base = window + (size_t)i * FL_UNIT;
    if (*is_fresh) {
        int saved_errno = errno;
        (void)madvise(base, (size_t)len_units[i] * FL_UNIT, MADV_POPULATE_WRITE);
        errno = saved_errno;
    }
    return base + offset[i];
}

static size_t room(const void *base)
{
    uint32_t i = unit_of(base);
    return (size_t)len_units[i] * FL_UNIT - offset[i];
}

void *malloc(size_t len)
{
    bool is_fresh;
    void *base = len >= min_len ? get_large(64, len, &is_fresh) : NULL;
    return base != NULL ? base : __libc_malloc(len);
}

void free(void *base)
{
    if (!is_ours(base)) {
        __libc_free(base);
        return;
    }
    uint32_t i = unit_of(base);
    pthread_mutex_lock(&lock);
    next_free[i] = first_free[len_units[i]];
    first_free[len_units[i]] = i;
    pthread_mutex_unlock(&lock);
}

void *calloc(size_t count, size_t len)
{
    size_t all;
    bool is_fresh;
    if (__builtin_mul_overflow(count, len, &all) || all < min_len) {
        return __libc_calloc(count, len);
    }
    void *base = get_large(64, all, &is_fresh);
    if (base == NULL) {
        return __libc_calloc(count, len);
    }
    return is_fresh ? base : memset(base, 0, all);
}

void *realloc(void *base, size_t len)
{
    if (base == NULL) {
        return malloc(len);
    }
    if (len == 0) {
        free(base);
        return NULL;
    }
    if (!is_ours(base) && len < min_len) {
        return __libc_realloc(base, len);
    }
    size_t old_len = malloc_usable_size(base);
    if (is_ours(base) && len <= old_len) {
        return base;
    }
    void *grown = malloc(len);
    if (grown != NULL) {
        memcpy(grown, base, old_len < len ? old_len : len);
        free(base);
    }
    return grown;
}

void *memalign(size_t align, size_t len)
{
    bool is_fresh;
    void *base = len >= min_len ? get_large(align, len, &is_fresh) : NULL;
    return base != NULL ? base : __libc_memalign(align, len);
}

void *aligned_alloc(size_t align, size_t len)
{
    return memalign(align, len);
}

int posix_memalign(void **out, size_t align, size_t len)
{
    void *base = memalign(align, len);
    if (base == NULL) {
        return ENOMEM;
    }
    *out = base;
    return 0;
}

/* glibc's own by handle, not RTLD_NEXT: the program may be linked to another allocator. */
size_t malloc_usable_size(void *base)
{
    static size_t (*next)(void *);
    if (base == NULL) {
        return 0;
    }
    if (is_ours(base)) {
        return room(base);
    }
    if (next == NULL) {
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        *(void **)&next = dlsym(libc, "malloc_usable_size");
    }
    return next(base);
}
