/* malloc-shaped functions under fl_ names: which allocator serves a request, which one owns a
 * pointer.
 *
 * A request of at least the threshold is served from the window; the rest, and what the window
 * refuses, goes to the next allocator in the preload order. A pointer is ours when it lies in the
 * window: one subtract and compare. State: fl_route, written at boot by runtime/, read-mostly
 * afterwards. */
#ifndef FL_ALLOC_ALLOC_H
#define FL_ALLOC_ALLOC_H

#include "alloc/harden.h"
#include "plan/plan.h"
#include "uffd/uffd.h"

/* The next allocator. NULL where it lacks the name; malloc, calloc, realloc and free are never
 * NULL. Each function knows the blocks of the others, but see foreign_sizes. */
struct fl_next {
    void *(*malloc)(size_t n);
    void (*free)(void *p);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *p, size_t n);
    void *(*memalign)(size_t align, size_t n);
    int (*posix_memalign)(void **out, size_t align, size_t n);
    void *(*aligned_alloc)(size_t align, size_t n);
    size_t (*usable_size)(void *p);
    /* __libc_free and __libc_realloc: of blocks that those know, and no others. */
    void (*libc_free)(void *p);
    void *(*libc_realloc)(void *p, size_t n);
    bool foreign_sizes; /* usable_size is not of realloc's object: it may not know all blocks */
    int (*trim)(size_t pad);
    int (*mallopt)(int param, int value);
    void (*stats)(void);
    void *mallinfo2; /* struct mallinfo2 (*)(void): preload/ knows the type */
    void *info;      /* int (*)(int, FILE *) */
};

/* LOADED: the next allocator is known, and large requests go there, too, until DONE. */
enum fl_boot_state {
    FL_BOOT_NONE,
    FL_BOOT_LOADING,
    FL_BOOT_LOADED,
    FL_BOOT_STARTING,
    FL_BOOT_DONE
};

/* Blocks of a round length would lie at round distances from each other. There a loop that reads
 * one and writes the other is up to half slower (docs/internals/regions.md, "Blocks of a round
 * length"). */
#define FL_ROUND ((size_t)32 * FL_MIB)
#define FL_SPREAD ((size_t)64 * FL_KIB)

struct fl_route {
    size_t
        /* bytes. 0 before boot, so that the first request of any size comes to us; SIZE_MAX: off */
        threshold;
    /* Both are written with the first large request, while other threads free. Before, no address
     * is behind the base, and the length is 0: either without the other has no address, too. */
    uintptr_t window_base;
    size_t window_len;
    struct fl_next next;
    /* What blocks of a round length get more: FL_SPREAD; or 0, where addresses are counted, or on
     * hugetlb pages. Mostly addresses: it is not touched. */
    _Atomic size_t spread;
    struct fl_region *region;
    struct fl_worker *worker; /* NULL: nothing decays by itself */
    bool caches;              /* thread caches are in use */
    _Atomic uint32_t booted;  /* enum fl_boot_state */
    void (*boot)(void);       /* plugged in by runtime/ at compile time: idempotent, any thread */
    /* Plugged in by boot: has fl_thread_end called with `c` when this thread ends. */
    void (*thread_ends)(struct fl_cache *c);
    /* Plugged in by boot, else NULL: the process may use so many bytes; UINT64_MAX: unknown. */
    void (*tune_next)(uint64_t fits);
    /* Plugged in by boot: what has to be done once before the first large request. Cheap when it
     * has been. */
    void (*first_large)(void);
};

extern FL_HIDDEN struct fl_route fl_route;

/* `len`, or more where it is round. */
static inline size_t fl_spread(size_t len)
{
    bool is_round = len >= FL_ROUND && len % FL_ROUND < FL_SPREAD;
    size_t by =
        FL_UNLIKELY(is_round) ? atomic_load_explicit(&fl_route.spread, memory_order_relaxed) : 0;

    return by != 0 ? fl_align_down(len, FL_ROUND) + by : len;
}

static inline bool fl_is_ours(const void *p)
{
    return (uintptr_t)p - fl_route.window_base < fl_route.window_len;
}

/* Requests of at least the threshold, or any before boot. NULL with errno ENOMEM when neither the
 * window nor the next allocator has the memory.  Threads: any.  Signals: as far as the next
 * allocator allows.  Context: early. */
void *fl_malloc_large(size_t n);
void *fl_calloc_large(size_t n);
/* `align` a power of two. */
void *fl_memalign_large(size_t align, size_t n);
/* From `next`, a function of the next allocator; NULL: it lacks the name. On failure errno is
 * ENOMEM or EINVAL, also where the next allocator does not set it; else it is kept. */
void *fl_next_aligned(void *(*next)(size_t align, size_t n), size_t align, size_t n);
/* The same as glibc's posix_memalign has it: 0, or ENOMEM, which then is in errno too. */
int fl_posix_memalign_large(void **out, size_t align, size_t n);
/* Any `p` and `n` of which one is ours, large, or early. */
void *fl_realloc_any(void *p, size_t n);

/* As __libc_realloc: what is not ours, and a small block, is of the next allocator's name of that
 * kind. */
void *fl_libc_realloc(void *p, size_t n);

/* `p` is in the window. A line and abort when it is not the start of a live block. Keeps errno. */
void fl_free_ours(void *p);
size_t fl_usable_ours(const void *p);

/* Gives back all that is free, but for `pad` bytes; those given back. */
size_t fl_trim(size_t pad);
/* malloc_trim(3), the next allocator's too: 1: memory went back. See trim.c. errno stays. */
int fl_trim_call(size_t pad);
/* For FAULTLESS_TRIM.  Threads: any. */
void fl_trim_choose(enum fl_trim mode);
/* As fl_release. */
int64_t fl_trim_to(size_t keep);

/* The calling thread's cache, or NULL. */
struct fl_cache *fl_thread_cache(void);
/* The calling thread ends: its cache goes to the next thread. */
void fl_thread_end(struct fl_cache *c);
/* The calling thread's memory policy has changed: its next request asks anew where it goes.
 * Signals: safe. */
void fl_thread_unsettle(void);

#endif
