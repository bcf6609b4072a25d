/* Diverts names of libc to us: its symbol table gets our addresses. See past.h.
 *
 * First the functions that are handed a block, to those of past_blocks.c. What hands out memory
 * stays libc's: an object that binds past us calls libc's mprotect and madvise for its blocks, too,
 * and we would not know. Those stay since what writes over their code, to be told of maps, finds
 * them by RTLD_NEXT (UCX), and has to see our calls.
 *
 * In the program's own namespace every other name that we and libc have (setuid, malloc_trim,
 * dlopen) is diverted to our function, which falls back to libc's. Where an object between us and
 * libc has one of the names (fakeroot), what it finds behind itself by RTLD_NEXT must not be us:
 * there they stay. */
#include "runtime/past.h"
#include "runtime/past_blocks.h"
#include "runtime/runtime.h"
#include "runtime/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static const char *const stay[] = {
    "malloc",        "calloc",  "memalign", "posix_memalign", "aligned_alloc", "valloc",
    "pvalloc",       "mmap",    "mmap64",   "munmap",         "mprotect",      "mremap",
    "pkey_mprotect", "madvise", "mlock",    "mlock2",         "syscall",
};

static _Atomic bool is_diverted; /* the program's libc; or it was found that it cannot be */
static _Atomic bool is_given_up;

/* Written under the loader's lock, before `to` can be found. */
enum { DIVERTED_MOST = 128 };
static struct fl_diversion diverted[DIVERTED_MOST];
static _Atomic size_t diverted_count;

/* NULL: we are in another namespace's. */
static struct link_map *our_map(void)
{
    struct link_map *m = fl_own_object();

    return m->l_ld == _DYNAMIC ? m : NULL;
}

void fl_past_hide(const char *from, const char *to)
{
    struct fl_object ours;

    if (!fl_symbols_read_us(&ours) || !fl_symbols_open(&ours)) {
        return;
    }
    for (size_t i = fl_object_first(&ours); i < fl_object_end(&ours); i++) {
        const char *f = fl_object_at(&ours, ours.symbol[i].st_value);
        if (f >= from && f < to) {
            ours.symbol[i].st_value = 0; /* the loader passes over it */
        }
    }
    fl_symbols_close(&ours);
}

void *fl_past_original(void *f)
{
    size_t n = atomic_load_explicit(&diverted_count, memory_order_acquire);

    for (size_t i = 0; i < n; i++) {
        if (diverted[i].to == f) {
            return diverted[i].was;
        }
    }
    return f;
}

void fl_past_give_up(const char *what)
{
    if (!atomic_exchange(&is_given_up, true) &&
        fl_runtime.options.value[FL_OPTION_log] >= FL_LOG_WARN) {
        fl_say(what);
    }
    __atomic_store_n(&fl_route.threshold, SIZE_MAX, __ATOMIC_RELAXED);
}

/* ---- the program's own namespace ---- */

static bool stays(const char *name)
{
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++) {
        if (strcmp(stay[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Has no object between us and libc a name that we and libc have? */
static bool is_clear(const struct link_map *us, const struct link_map *libc_map,
                     const struct fl_object *ours, const struct fl_object *libc)
{
    struct fl_object e;
    const struct link_map *m = us->l_next;

    for (; m != NULL && m != libc_map; m = m->l_next) {
        bool known = fl_symbols_read(&e, m);
        for (size_t i = fl_object_first(ours); known && i < fl_object_end(ours); i++) {
            const char *name = fl_object_name(ours, &ours->symbol[i]);
            if (fl_object_symbol(&e, name, fl_object_any) != NULL &&
                fl_object_symbol(libc, name, NULL) != NULL) {
                return false;
            }
        }
    }
    return m != NULL;
}

static void divert_and_note(const struct fl_object *libc, struct fl_diversion one)
{
    size_t n = atomic_load_explicit(&diverted_count, memory_order_relaxed);

    if (n < DIVERTED_MOST) {
        diverted[n] = one;
        atomic_store_explicit(&diverted_count, n + 1, memory_order_release);
        fl_symbols_divert(libc, one);
    }
}

static void divert_block_calls(const struct fl_object *libc)
{
    for (unsigned i = 0; i < FL_PAST_ALL; i++) {
        void *was = fl_symbols_function(libc, fl_past_names[i]);
        if (was != NULL) {
            divert_and_note(libc, (struct fl_diversion){fl_past_block_call(0, i, was), was});
        }
    }
}

static void divert_others(const struct fl_object *ours, const struct fl_object *libc)
{
    size_t end = fl_object_end(ours);

    for (size_t i = fl_object_first(ours); i < end; i++) {
        const ElfW(Sym) *s = &ours->symbol[i];
        const char *name = fl_object_name(ours, s);
        void *was = stays(name) ? NULL : fl_symbols_function(libc, name);
        if (was != NULL) {
            divert_and_note(libc, (struct fl_diversion){fl_object_at(ours, s->st_value), was});
        }
    }
}

/* Called back once, under the loader's lock, as the next one: no object comes or goes, and one
 * thread does it. */
static int divert_program(struct dl_phdr_info *info, size_t size, void *map)
{
    const struct link_map *us = map;
    struct fl_object ours, libc;
    const struct link_map *libc_map = fl_symbols_of_libc(us, &libc);

    (void)info, (void)size;
    if (atomic_load(&is_diverted)) {
        return 1;
    }
    if (libc_map == NULL || !fl_symbols_read_us(&ours) || !fl_symbols_open(&libc)) {
        fl_past_give_up(
            "libc's free cannot be told of large blocks, which an object that is loaded with "
            "RTLD_DEEPBIND needs: from here on they are the next allocator's");
    } else {
        divert_block_calls(&libc);
        if (is_clear(us, libc_map, &ours, &libc)) {
            divert_others(&ours, &libc);
        }
        fl_symbols_close(&libc);
    }
    atomic_store_explicit(&is_diverted, true, memory_order_release);
    return 1;
}

bool fl_past_is_wanted(void)
{
    return atomic_load_explicit(&fl_route.booted, memory_order_acquire) == FL_BOOT_DONE &&
           fl_runtime.active && !atomic_load_explicit(&is_given_up, memory_order_relaxed);
}

void fl_past_deep(void)
{
    if (atomic_load_explicit(&is_diverted, memory_order_acquire)) {
        return;
    }
    int saved = errno;
    if (!fl_boot_for_call()) { /* what is loaded now gets libc's free */
        fl_past_give_up(
            "another thread is amid the start, and an object is loaded with RTLD_DEEPBIND: "
            "large requests are the next allocator's");
    }
    struct link_map *us = our_map();
    if (us != NULL && fl_past_is_wanted()) {
        (void)dl_iterate_phdr(divert_program, us);
    }
    errno = saved;
}

/* ---- what is looked up ---- */

static bool is_our_name(const char *name)
{
    static struct fl_object ours;
    static _Atomic bool begun, is_read;
    struct fl_object own;

    if (FL_LIKELY(atomic_load_explicit(&is_read, memory_order_acquire))) {
        return fl_object_symbol(&ours, name, NULL) != NULL;
    }
    if (!fl_symbols_read_us(&own)) {
        return false;
    }
    if (!atomic_exchange(&begun, true)) { /* one thread writes it */
        ours = own;
        atomic_store_explicit(&is_read, true, memory_order_release);
    }
    return fl_object_symbol(&own, name, NULL) != NULL;
}

/* Is that the code of an object which comes after us? Those before us find us. */
static bool is_behind_us(const void *code)
{
    Dl_info info;
    void *map = NULL;

    return our_map() != NULL && dladdr1(code, &info, &map, RTLD_DL_LINKMAP) != 0 &&
           fl_is_behind(map, our_map());
}

/* A search of the usual order finds us first, but for one that begins behind us, and one for a
 * version: our names have none. */
static bool is_found_past_us(void *handle, bool versioned, const void *caller)
{
    if (handle == RTLD_DEFAULT) {
        return versioned;
    }
    return handle != RTLD_NEXT || versioned || is_behind_us(caller);
}

void fl_past_lookup(void *handle, const char *name, bool versioned, const void *caller)
{
    if ((handle == RTLD_DEFAULT && !versioned) || fl_symbols_is_ours(caller)) {
        return;
    }
    int saved = errno;
    if (handle != RTLD_NEXT && handle != RTLD_DEFAULT) {
        fl_past_namespace_of(handle);
    }
    if (!atomic_load_explicit(&is_diverted, memory_order_acquire) && is_our_name(name) &&
        !stays(name) && is_found_past_us(handle, versioned, caller)) {
        fl_past_deep();
    }
    errno = saved;
}
