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
 * there they stay.
 *
 * Objects of another namespace are bound before we see its libc, since the file that dlmopen(3)
 * names must be the first one there. When the program looks a name up in the namespace, which is
 * its way in, the table there is written, and the words that were bound by it. */
#include "runtime/past.h"
#include "runtime/past_blocks.h"
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* The linker's: this library, or the program it is part of. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern FL_HIDDEN const char __ehdr_start[], _end[];

static const char *const stay[] = {
    "malloc",        "calloc",  "memalign", "posix_memalign", "aligned_alloc", "valloc",
    "pvalloc",       "mmap",    "mmap64",   "munmap",         "mprotect",      "mremap",
    "pkey_mprotect", "madvise", "mlock",    "mlock2",         "syscall",
};

static _Atomic bool is_diverted;    /* the program's libc; or it was found that it cannot be */
static _Atomic bool has_namespaces; /* of dlmopen(3) */
static _Atomic bool is_given_up;

/* Written under the loader's lock, before `to` can be found. */
enum { DIVERTED_MOST = 128 };
static struct diversion {
    void *to, *was;
} diverted[DIVERTED_MOST];
static _Atomic size_t diverted_count;

static bool is_within_us(const void *f)
{
    return (uintptr_t)f - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start);
}

/* NULL: we are in another namespace's. */
static struct link_map *our_map(void)
{
    struct link_map *m = fl_own_object();

    return m->l_ld == _DYNAMIC ? m : NULL;
}

static bool read_map(struct fl_object *out, const struct link_map *m)
{
    return fl_object_read(out, m->l_addr, m->l_ld);
}

static bool read_us(struct fl_object *out)
{
    return fl_object_read(out, (uintptr_t)__ehdr_start, _DYNAMIC);
}

static bool has(const struct link_map *m, const char *name)
{
    struct fl_object e;

    return read_map(&e, m) && fl_object_symbol(&e, name, NULL) != NULL;
}

/* The first of the objects from `m` on that defines `name`; NULL: none. */
static const struct link_map *find_object(const struct link_map *m, const char *name)
{
    while (m != NULL && !has(m, name)) {
        m = m->l_next;
    }
    return m;
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

/* ---- a symbol table ---- */

/* The pages of the table; len 0: code may lie in them. What comes before it and behind it to the
 * end of its names is for the loader. */
static struct fl_range table_pages(const struct fl_object *e)
{
    uintptr_t from = fl_align_down((uintptr_t)e->symbol, fl_page.base);
    uintptr_t to = fl_align_up((uintptr_t)&e->symbol[fl_object_end(e)], fl_page.base);
    bool whole = (uintptr_t)e->symbol < (uintptr_t)e->string &&
                 to <= fl_align_up((uintptr_t)e->string + e->string_len, sizeof(uintptr_t));

    return (struct fl_range){from, whole && from >= e->base ? to - from : 0};
}

static int protect(struct fl_range r, int prot)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the loader's pages */
    return fl_libc.mprotect((void *)r.base, r.len, prot);
}

static bool open_table(const struct fl_object *e)
{
    struct fl_range pages = table_pages(e);

    return pages.len != 0 && protect(pages, PROT_READ | PROT_WRITE) == 0;
}

static void close_table(const struct fl_object *e)
{
    (void)protect(table_pages(e), PROT_READ);
}

void fl_past_hide(const char *from, const char *to)
{
    struct fl_object ours;

    if (!read_us(&ours) || !open_table(&ours)) {
        return;
    }
    for (size_t i = fl_object_first(&ours); i < fl_object_end(&ours); i++) {
        const char *f = fl_object_at(&ours, ours.symbol[i].st_value);
        if (f >= from && f < to) {
            ours.symbol[i].st_value = 0; /* the loader passes over it */
        }
    }
    close_table(&ours);
}

/* NULL: it has no such name, or that is diverted. */
static void *function_of(const struct fl_object *libc, const char *name)
{
    const ElfW(Sym) *s = fl_object_symbol(libc, name, NULL);
    void *f = s != NULL ? fl_object_at(libc, s->st_value) : NULL;

    return is_within_us(f) ? NULL : f;
}

/* Every name of that function, such as __libc_free of free. */
static void divert(const struct fl_object *libc, struct diversion one)
{
    size_t end = fl_object_end(libc);

    for (size_t i = fl_object_first(libc); i < end; i++) {
        ElfW(Sym) *s = &libc->symbol[i];
        if (fl_object_at(libc, s->st_value) == one.was) {
            __atomic_store_n(&s->st_value, (uintptr_t)one.to - libc->base, __ATOMIC_RELEASE);
        }
    }
}

/* No more blocks are made; one that there is must not get to what binds past us. */
static void give_up(const char *what)
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
        bool known = read_map(&e, m);
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

static void divert_and_note(const struct fl_object *libc, struct diversion one)
{
    size_t n = atomic_load_explicit(&diverted_count, memory_order_relaxed);

    if (n < DIVERTED_MOST) {
        diverted[n] = one;
        atomic_store_explicit(&diverted_count, n + 1, memory_order_release);
        divert(libc, one);
    }
}

static void divert_block_calls(const struct fl_object *libc)
{
    for (unsigned i = 0; i < FL_PAST_ALL; i++) {
        void *was = function_of(libc, fl_past_names[i]);
        if (was != NULL) {
            divert_and_note(libc, (struct diversion){fl_past_block_call(0, i, was), was});
        }
    }
}

static void divert_others(const struct fl_object *ours, const struct fl_object *libc)
{
    size_t end = fl_object_end(ours);

    for (size_t i = fl_object_first(ours); i < end; i++) {
        const ElfW(Sym) *s = &ours->symbol[i];
        const char *name = fl_object_name(ours, s);
        void *was = stays(name) ? NULL : function_of(libc, name);
        if (was != NULL) {
            divert_and_note(libc, (struct diversion){fl_object_at(ours, s->st_value), was});
        }
    }
}

static const struct link_map *first_of(const struct link_map *m)
{
    while (m->l_prev != NULL) {
        m = m->l_prev;
    }
    return m;
}

/* Called back once, under the loader's lock, as the next one: no object comes or goes, and one
 * thread does it. */
static int divert_program(struct dl_phdr_info *info, size_t size, void *map)
{
    const struct link_map *us = map, *libc_map = find_object(first_of(us), fl_of_libc);
    struct fl_object ours, libc;

    (void)info, (void)size;
    if (atomic_load(&is_diverted)) {
        return 1;
    }
    if (libc_map == NULL || !read_us(&ours) || !read_map(&libc, libc_map) || !open_table(&libc)) {
        give_up("libc's free cannot be told of large blocks, which an object that is loaded with "
                "RTLD_DEEPBIND needs: from here on they are the next allocator's");
    } else {
        divert_block_calls(&libc);
        if (is_clear(us, libc_map, &ours, &libc)) {
            divert_others(&ours, &libc);
        }
        close_table(&libc);
    }
    atomic_store_explicit(&is_diverted, true, memory_order_release);
    return 1;
}

/* False amid boot, which looks up what libc has, and where no block is ours. */
static bool is_wanted(void)
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
        give_up("another thread is amid the start, and an object is loaded with RTLD_DEEPBIND: "
                "large requests are the next allocator's");
    }
    struct link_map *us = our_map();
    if (us != NULL && is_wanted()) {
        (void)dl_iterate_phdr(divert_program, us);
    }
    errno = saved;
}

/* ---- another namespace ---- */

struct namespace
{
    const struct link_map *object; /* one of its */
    Lmid_t id;
};

static bool bind(void **word, void *to, struct fl_range kept)
{
    struct fl_range page = {fl_align_down((uintptr_t)word, fl_page.base), fl_page.base};
    bool is_kept = (uintptr_t)word - kept.base < kept.len;

    if (is_kept && protect(page, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n(word, to, __ATOMIC_RELEASE);
    if (is_kept) {
        (void)protect(page, PROT_READ);
    }
    return true;
}

/* What was bound to a function of `calls` before its name was diverted. */
static bool divert_bound(const struct fl_object *e, const struct diversion calls[FL_PAST_ALL])
{
    struct fl_range kept = fl_object_protected(e);
    bool done = true;

    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < e->bound[t].count; i++) {
            void **word = fl_object_word(e, &e->bound[t].first[i]);
            for (size_t k = 0; word != NULL && k < FL_PAST_ALL; k++) {
                if (calls[k].was != NULL && *word == calls[k].was) {
                    done = bind(word, calls[k].to, kept) && done;
                }
            }
        }
    }
    return done;
}

static bool divert_objects(const struct link_map *m, const struct diversion calls[FL_PAST_ALL])
{
    struct fl_object e;
    bool done = true;

    for (; m != NULL; m = m->l_next) {
        if (read_map(&e, m)) {
            done = divert_bound(&e, calls) && done;
        }
    }
    return done;
}

static int divert_namespace(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct namespace *in = arg;
    const struct link_map *first = first_of(in->object), *map = find_object(first, fl_of_libc);
    struct diversion calls[FL_PAST_ALL];
    struct fl_object libc;

    (void)info, (void)size;
    if (map == NULL || !read_map(&libc, map) ||
        function_of(&libc, fl_past_names[FL_PAST_FREE]) == NULL) {
        return 1; /* it has no libc, or that is done */
    }
    bool done = in->id < FL_PAST_NAMESPACES && open_table(&libc);
    if (done) {
        for (unsigned i = 0; i < FL_PAST_ALL; i++) {
            void *was = function_of(&libc, fl_past_names[i]);
            calls[i] = (struct diversion){NULL, was};
            if (was != NULL) {
                calls[i].to = fl_past_block_call((unsigned)in->id, i, was);
                divert(&libc, calls[i]);
            }
        }
        close_table(&libc);
        done = divert_objects(first, calls);
    }
    if (!done) {
        give_up("the free of a namespace of dlmopen(3) cannot be told of large blocks: from here "
                "on they are the next allocator's");
    }
    return 1;
}

void fl_past_namespace(void)
{
    (void)fl_boot_for_call();
    atomic_store_explicit(&has_namespaces, true, memory_order_relaxed);
}

static void divert_namespace_of(void *handle)
{
    struct namespace in = {.object = NULL};
    void *map = NULL;

    if (dlinfo(handle, RTLD_DI_LMID, &in.id) == 0 && in.id != LM_ID_BASE &&
        dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && is_wanted()) {
        in.object = map;
        (void)dl_iterate_phdr(divert_namespace, &in);
    }
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
    if (!read_us(&own)) {
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
    if ((handle == RTLD_DEFAULT && !versioned) || is_within_us(caller)) {
        return;
    }
    int saved = errno;
    if (atomic_load_explicit(&has_namespaces, memory_order_relaxed) && handle != RTLD_NEXT &&
        handle != RTLD_DEFAULT) {
        divert_namespace_of(handle);
    }
    if (!atomic_load_explicit(&is_diverted, memory_order_acquire) && is_our_name(name) &&
        !stays(name) && is_found_past_us(handle, versioned, caller)) {
        fl_past_deep();
    }
    errno = saved;
}
