/* Finds the next allocator in the preload order: the whole family from one object, never a mixture.
 *
 * A program may be linked to another allocator than libc's (redis-server to jemalloc): a name that this allocator lacks
 * would be found in libc by a plain dlsym(RTLD_NEXT), and libc would be handed jemalloc's pointers. */
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <string.h>

/* The next definition of `name`, when it is of the object at `base` (NULL: of any). */
static void *lookup(const char *name, const void *base)
{
    Dl_info info;
    void *f = dlsym(RTLD_NEXT, name);

    if (f == NULL || base == NULL) {
        return f;
    }
    return dladdr(f, &info) != 0 && info.dli_fbase == base ? f : NULL;
}

bool fl_find_next(struct fl_next *out, bool *out_is_libc)
{
    Dl_info info;
    void *first = lookup("malloc", NULL);

    if (first == NULL || dladdr(first, &info) == 0) {
        return false;
    }
    const struct {
        const char *name;
        void *slot;
    } family[] = {
        {"malloc", &out->malloc},
        {"free", &out->free},
        {"calloc", &out->calloc},
        {"realloc", &out->realloc},
        {"memalign", &out->memalign},
        {"posix_memalign", &out->posix_memalign},
        {"aligned_alloc", &out->aligned_alloc},
        {"malloc_usable_size", &out->usable_size},
        {"valloc", &out->valloc},
        {"pvalloc", &out->pvalloc},
        {"malloc_trim", &out->trim},
        {"mallopt", &out->mallopt},
        {"malloc_stats", &out->stats},
        {"mallinfo2", &out->mallinfo2},
        {"mallinfo", &out->mallinfo},
        {"malloc_info", &out->info},
    };
    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        void *f = lookup(family[i].name, info.dli_fbase);
        memcpy(family[i].slot, &f, sizeof f);
    }
    Dl_info libc;
    void *of_libc = dlsym(RTLD_NEXT, "gnu_get_libc_version");
    *out_is_libc =
        of_libc != NULL && dladdr(of_libc, &libc) != 0 && libc.dli_fbase == info.dli_fbase;
    return out->malloc != NULL && out->free != NULL && out->calloc != NULL && out->realloc != NULL;
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
    };

    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        void *f = dlsym(RTLD_NEXT, family[i].name);
        if (f != NULL) { /* else the system call does */
            memcpy(family[i].slot, &f, sizeof f);
        }
    }
}
