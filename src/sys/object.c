/* Names to addresses, of an object in memory, as the dynamic linker does it. Not by dlsym(3): that
 * allocates, takes the linker's lock, and is a name that others define; from such a wrapper
 * RTLD_NEXT is what is next behind the wrapper, which may be us.
 *
 * Calls no function of another object: a request that came from there while boot looks for the next
 * allocator could be served by none. tests/checks/imports keeps that.
 * Sources: the System V ABI, "Dynamic Linking"; the GNU hash table as binutils writes it; "Symbol
 * Versioning" in the Linux Standard Base; glibc 2.36, elf/dl-lookup.c. */
#include "sys/sys.h"

#include <link.h>
#include <sys/auxv.h>

enum { HIDDEN = 0x8000, UNVERSIONED = 1 }; /* of an entry of DT_VERSYM */

static const void *at(uintptr_t addr)
{
    return (const void *)addr; /* NOLINT(performance-no-int-to-ptr): addresses from a file */
}

bool fl_object_read(struct fl_object *out, uintptr_t base, const void *dynamic)
{
    const void *symbol = NULL, *string = NULL, *hash = NULL, *chain = NULL, *version = NULL,
               *defined = NULL;

    for (const ElfW(Dyn) *d = dynamic; d != NULL && d->d_tag != DT_NULL; d++) {
        uintptr_t v = d->d_un.d_ptr;
        const void *p = at(v < base ? base + v : v); /* the linker has added it in most objects */
        switch (d->d_tag) {
        case DT_SYMTAB:
            symbol = p;
            break;
        case DT_STRTAB:
            string = p;
            break;
        case DT_GNU_HASH:
            hash = p;
            break;
        case DT_HASH:
            chain = p;
            break;
        case DT_VERSYM:
            version = p;
            break;
        case DT_VERDEF:
            defined = p;
            break;
        default:
            break;
        }
    }
    out->base = base;
    out->symbol = symbol;
    out->string = string;
    out->hash = hash;
    out->chain = chain;
    out->version = version;
    out->defined = defined;
    return symbol != NULL && string != NULL && (hash != NULL || chain != NULL);
}

static bool same(const char *a, const char *b)
{
    for (; *a == *b; a++, b++) {
        if (*a == '\0') {
            return true;
        }
    }
    return false;
}

static bool is_version(const struct fl_object *o, unsigned index, const char *version)
{
    const char *p = o->defined;

    for (const ElfW(Verdef) *d = (const void *)p; d != NULL;) {
        const ElfW(Verdaux) *name = (const void *)(p + d->vd_aux);
        if ((d->vd_ndx & ~HIDDEN) == index) {
            return same(o->string + name->vda_name, version);
        }
        p += d->vd_next;
        d = d->vd_next != 0 ? (const void *)p : NULL;
    }
    return false;
}

/* 2: it is the one; 1: it is where none is better; 0: it is not. */
static int match(const struct fl_object *o, uint32_t i, const char *name, const char *version)
{
    const ElfW(Sym) *s = (const ElfW(Sym) *)o->symbol + i;
    unsigned type = ELF64_ST_TYPE(s->st_info);
    bool is_known =
        type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE || type == STT_OBJECT;

    if (s->st_shndx == SHN_UNDEF || s->st_value == 0 || !is_known ||
        ELF64_ST_BIND(s->st_info) == STB_LOCAL || !same(o->string + s->st_name, name)) {
        return 0;
    }
    if (o->version == NULL) {
        return 2;
    }
    unsigned v = o->version[i], index = v & ~(unsigned)HIDDEN;
    if (version != NULL && index > UNVERSIONED && is_version(o, index, version)) {
        return 2;
    }
    return (v & HIDDEN) == 0 && index != 0 ? 1 : 0;
}

/* The better of two candidates, 0 is none; `*rank` is that of `best`. */
static uint32_t better(const struct fl_object *o, uint32_t i, uint32_t best, int *rank,
                       const char *name, const char *version)
{
    int m = match(o, i, name, version);

    if (m <= *rank) {
        return best;
    }
    *rank = m;
    return i;
}

static uint32_t find_by_gnu_hash(const struct fl_object *o, const char *name, const char *version)
{
    enum { WORD_BITS = 64 };
    uint32_t buckets = o->hash[0], first = o->hash[1], words = o->hash[2], shift = o->hash[3];
    const uint64_t *filter = (const void *)(o->hash + 4);
    const uint32_t *bucket = (const void *)(filter + words), *of = bucket + buckets;
    uint32_t h = 5381, best = 0;
    int rank = 0;

    for (const char *c = name; *c != '\0'; c++) {
        h = h * 33 + (unsigned char)*c;
    }
    uint64_t word = filter[h / WORD_BITS % words];
    if ((word >> h % WORD_BITS & word >> (h >> shift) % WORD_BITS & 1) == 0) {
        return 0;
    }
    uint32_t i = bucket[h % buckets];
    for (bool more = i >= first; more; i++) {
        uint32_t is = of[i - first];
        if ((is | 1) == (h | 1)) {
            best = better(o, i, best, &rank, name, version);
        }
        more = (is & 1) == 0;
    }
    return best;
}

static uint32_t find_by_hash(const struct fl_object *o, const char *name, const char *version)
{
    uint32_t buckets = o->chain[0], h = 0, best = 0;
    int rank = 0;

    for (const char *c = name; *c != '\0'; c++) {
        h = (h << 4) + (unsigned char)*c;
        h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
    }
    for (uint32_t i = o->chain[2 + h % buckets]; i != 0; i = o->chain[2 + buckets + i]) {
        best = better(o, i, best, &rank, name, version);
    }
    return best;
}

/* What an indirect function decides for this processor. */
static void *decided(uintptr_t function)
{
#if defined(__aarch64__)
    static const uint64_t has_more = (uint64_t)1 << 62; /* _IFUNC_ARG_HWCAP */
    const uint64_t more[] = {3 * sizeof(uint64_t), fl_sys_auxval(AT_HWCAP),
                             fl_sys_auxval(AT_HWCAP2)};
    void *(*decide)(uint64_t, const uint64_t *);

    *(const void **)(void *)&decide = at(function);
    return decide(more[1] | has_more, more);
#else
    void *(*decide)(void);

    *(const void **)(void *)&decide = at(function);
    return decide();
#endif
}

void *fl_object_find(const struct fl_object *o, const char *name, const char *version)
{
    uint32_t i =
        o->hash != NULL ? find_by_gnu_hash(o, name, version) : find_by_hash(o, name, version);
    const ElfW(Sym) *s = (const ElfW(Sym) *)o->symbol + i;

    if (i == 0) {
        return NULL;
    }
    uintptr_t function = o->base + s->st_value;
    return ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC ? decided(function)
                                                      : (void *)function; /* NOLINT */
}
