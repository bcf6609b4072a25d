/* Finds the next allocator's functions.
 *
 * Each name is taken from its own next definition in the loader's order, as a program binds
 * it without us. That order ends at the owner, the last of the objects in which malloc, free,
 * calloc and realloc are found: an object with fewer than these four traces what those behind
 * it do, but what an allocator with all four lacks (jemalloc has no pvalloc) is not taken
 * from behind it, where its pointers are not known. If the owner's blocks come from libc's
 * heap, it is a tracer too, and what it lacks is libc's. */
#include "runtime/runtime.h"

#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <string.h>

struct definition {
    void *f; /* NULL: there is none */
    const struct link_map *object;
};

static FL_AT_START const struct link_map *next_owner; /* constant after boot */

struct name {
    const char *name;
    const char *version; /* that programs ask for */
    void *slot;
    bool stays; /* taken from behind the owner too */
    struct definition found;
};

/* A name that is older than glibc is on this machine has the version of the first one there. */
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define SINCE(version) (version)
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#define SINCE(version) OLDEST /* of a version below 2.17 */
#else
#error "the oldest version of glibc's names on this machine"
#endif

#define KEEP_FOUR(...) __VA_ARGS__
#define KEEP_REST(...) __VA_ARGS__
#define KEEP_TELL(...) __VA_ARGS__
#define KEEP_LIBC(...) __VA_ARGS__
#define KEEP_OVER(...)
enum { IS_FOUR, IS_REST = 0, IS_TELL = 0, IS_LIBC = 1 };

/* Of names.def, in its order: malloc, free, calloc and realloc come first. */
enum {
#define X(kind, name, slot, version) KEEP_##kind(AT_##slot, )
#include "runtime/names.def"
#undef X
    NAMES,
    FOUR = AT_memalign
};

/* This library's, and the last of those that the program was started with. */
static FL_AT_START struct link_map *own_map, *last_map;

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
/* NOLINTNEXTLINE(readability-redundant-declaration): hidden */
extern FL_HIDDEN ElfW(Dyn) _DYNAMIC[]; /* this library's, or that of the program it is part of */
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/* Objects that the program was started with stay where they are in the loader's list, which is the
 * order in which it binds names: first the program, then what is preloaded. */
struct link_map *fl_own_object(void)
{
    if (own_map == NULL) {
        struct link_map *m = _r_debug.r_map;
        while (m->l_ld != _DYNAMIC && m->l_next != NULL) {
            m = m->l_next;
        }
        for (last_map = m; last_map->l_next != NULL;) {
            last_map = last_map->l_next;
        }
        own_map = m;
    }
    return own_map;
}

bool fl_is_behind(const struct link_map *a, const struct link_map *b)
{
    for (b = b->l_next; b != NULL; b = b->l_next) {
        if (a == b) {
            return true;
        }
    }
    return false;
}

static void *find_in(const struct link_map *m, const char *name, const char *version)
{
    struct fl_object o;

    return fl_object_read(&o, m->l_addr, m->l_ld) ? fl_object_find(&o, name, version) : NULL;
}

/* The next definition behind this library. A program's reference names libc's version and binds to
 * a definition of that version also where it is not the default one (libc_malloc_debug). */
static struct definition find(const char *name, const char *version)
{
    for (const struct link_map *m = fl_own_object(); m != last_map;) {
        m = m->l_next;
        void *f = find_in(m, name, version);
        if (f != NULL) {
            return (struct definition){f, m};
        }
    }
    return (struct definition){.f = NULL};
}

/* Bytes that libc's heap has handed out. */
static size_t handed_out(void *mallinfo2)
{
    struct mallinfo2 (*ask)(void);

    memcpy(&ask, &mallinfo2, sizeof ask);
    struct mallinfo2 info = ask();
    return info.uordblks + info.hblkhd;
}

/* The owner lacks a name that deals in its blocks, but they are libc's: one request tells. It
 * is too long for the thread caches of libc, which its figures count as handed out. */
static bool is_tracer_of_libc(const struct name *names, const struct fl_next *next,
                              const struct link_map *owner, const struct link_map *libc)
{
    const size_t probe = 9000;
    const struct definition *info = &names[AT_mallinfo2].found;
    bool lacks = false;

    for (size_t i = AT_memalign; i <= AT_usable_size; i++) {
        lacks = lacks || (names[i].found.f != NULL && fl_is_behind(names[i].found.object, owner));
    }
    if (!lacks || info->f == NULL || info->object != libc) {
        return false;
    }
    size_t before = handed_out(info->f);
    void *p = next->malloc(probe);
    size_t after = handed_out(info->f);
    next->free(p);
    return after >= before + probe;
}

static void *memalign_by_posix(size_t align, size_t n)
{
    void *p = NULL;
    int rc = fl_route.next.posix_memalign(&p, fl_max(align, sizeof(void *)), n);

    if (rc != 0) {
        errno = rc;
        return NULL;
    }
    return p;
}

static int posix_by_memalign(void **out, size_t align, size_t n)
{
    if (!fl_is_pow2(align) || align < sizeof(void *)) {
        return EINVAL;
    }
    void *p = fl_route.next.memalign(align, n);
    if (p == NULL) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}

/* The aligned names of one allocator stand in for each other. */
static void complete(struct fl_next *next)
{
    if (next->memalign == NULL && next->aligned_alloc != NULL) {
        next->memalign = next->aligned_alloc;
    } else if (next->memalign == NULL && next->posix_memalign != NULL) {
        next->memalign = memalign_by_posix;
    }
    if (next->aligned_alloc == NULL) {
        next->aligned_alloc = next->memalign;
    }
    if (next->posix_memalign == NULL && next->memalign != NULL) {
        next->posix_memalign = posix_by_memalign;
    }
}

static const struct link_map *owner_of(const struct name *four)
{
    const struct link_map *owner = four[0].found.object;

    for (size_t i = 1; i < FOUR; i++) {
        owner = fl_is_behind(four[i].found.object, owner) ? four[i].found.object : owner;
    }
    return owner;
}

bool fl_find_next(struct fl_next *out, bool *out_is_libc)
{
    /* NOLINTBEGIN(bugprone-macro-parentheses): names */
    struct name names[NAMES] = {
#define X(kind, id, field, since)                                                                  \
    KEEP_##kind({.name = #id, .version = since, .slot = &out->field, .stays = IS_##kind}, )
#include "runtime/names.def"
#undef X
    };
    /* NOLINTEND(bugprone-macro-parentheses) */
    const struct link_map *libc = find(fl_of_libc, NULL).object;

    for (size_t i = 0; i < NAMES; i++) {
        names[i].found = find(names[i].name, names[i].version);
        if (i < FOUR && names[i].found.f == NULL) {
            return false;
        }
        memcpy(names[i].slot, &names[i].found.f, sizeof names[i].found.f);
    }
    const struct link_map *owner = owner_of(names);
    next_owner = owner;
    if (owner != libc && !is_tracer_of_libc(names, out, owner, libc)) {
        for (size_t i = FOUR; i < NAMES; i++) {
            if (names[i].found.f != NULL && !names[i].stays &&
                fl_is_behind(names[i].found.object, owner)) {
                memset(names[i].slot, 0, sizeof names[i].found.f);
            }
        }
    }
    out->foreign_sizes = names[AT_usable_size].found.object != names[AT_realloc].found.object;
    complete(out);
    *out_is_libc = libc != NULL && names[AT_malloc].found.object == libc;
    return true;
}

bool fl_is_next_owners(const char *name)
{
    const struct link_map *object = find(name, NULL).object;

    return object != NULL && object == next_owner;
}

const char *fl_first_of(const char *name)
{
    const struct link_map *m = _r_debug.r_map;

    while (m != fl_own_object() && find_in(m, name, NULL) == NULL) {
        m = m->l_next;
    }
    if (m == fl_own_object()) {
        return NULL;
    }
    return m->l_name[0] != '\0' ? m->l_name : program_invocation_name;
}

void *fl_find_next_of(const char *name)
{
    return fl_past_original(find(name, NULL).f);
}

void fl_find_libc(struct fl_libc *out)
{
    const struct {
        const char *name;
        void *slot;
    } family[] = {
        {"mmap", &out->mmap},         {"munmap", &out->munmap},
        {"mprotect", &out->mprotect}, {"pkey_mprotect", &out->pkey_mprotect},
        {"madvise", &out->madvise},   {"mremap", &out->mremap},
        {"mlock", &out->mlock},       {"mlock2", &out->mlock2},
        {"mlockall", &out->mlockall}, {"munlockall", &out->munlockall},
        {"syscall", &out->syscall},   {"_dl_allocate_tls", &out->allocate_tls},
    };
    const struct link_map *libc = find(fl_of_libc, NULL).object;

    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        void *f = fl_find_next_of(family[i].name);
        if (f != NULL) { /* else the system call does */
            memcpy(family[i].slot, &f, sizeof f);
        }
    }
    if (libc != NULL) {
        *(void **)(void *)&out->memset = find_in(libc, "memset", NULL);
        *(void **)(void *)&out->memcpy = find_in(libc, "memcpy", NULL);
    }
}
