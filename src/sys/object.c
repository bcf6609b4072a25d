/* Names to addresses, of an object in memory, as the dynamic linker does it. Not by dlsym(3): that
 * allocates, takes the linker's lock, and is a name that others define; from such a wrapper
 * RTLD_NEXT is what is next behind the wrapper, which may be us.
 *
 * Calls no function of another object: a request that came from there while boot looks for the next
 * allocator could be served by none. tests/checks/imports keeps that.
 * Sources: the System V ABI, "Dynamic Linking"; the GNU hash table as binutils writes it; "Symbol
 * Versioning" in the Linux Standard Base; the ABI's supplements for x86-64 and AArch64; glibc 2.36,
 * elf/dl-lookup.c. */
#include "sys/sys.h"

#include <sys/auxv.h>

#if defined(__x86_64__)
enum { BINDS_CALL = R_X86_64_JUMP_SLOT, BINDS_DATA = R_X86_64_GLOB_DAT, BINDS_WORD = R_X86_64_64 };
#elif defined(__aarch64__)
enum {
    BINDS_CALL = R_AARCH64_JUMP_SLOT,
    BINDS_DATA = R_AARCH64_GLOB_DAT,
    BINDS_WORD = R_AARCH64_ABS64
};
#else
#error "relocations that give a word the address of a symbol"
#endif

enum { HIDDEN = 0x8000, UNVERSIONED = 1 }; /* of an entry of DT_VERSYM */

static void *at(uintptr_t addr)
{
    return (void *)addr; /* NOLINT(performance-no-int-to-ptr): addresses from a file */
}

bool fl_object_read(struct fl_object *out, uintptr_t base, const ElfW(Dyn) * d)
{
    struct fl_object o = {.base = base};

    for (; d != NULL && d->d_tag != DT_NULL; d++) {
        uintptr_t v = d->d_un.d_ptr;
        void *p = at(v < base ? base + v : v); /* the linker has added it in most objects */
        switch (d->d_tag) {
        case DT_SYMTAB:
            o.symbol = p;
            break;
        case DT_STRTAB:
            o.string = p;
            break;
        case DT_STRSZ:
            o.string_len = v;
            break;
        case DT_GNU_HASH:
            o.hash = p;
            break;
        case DT_HASH:
            o.chain = p;
            break;
        case DT_VERSYM:
            o.version = p;
            break;
        case DT_VERDEF:
            o.defined = p;
            break;
        case DT_RELA:
            o.bound[0].first = p;
            break;
        case DT_RELASZ:
            o.bound[0].count = v / sizeof(ElfW(Rela));
            break;
        case DT_JMPREL:
            o.bound[1].first = p;
            break;
        case DT_PLTRELSZ:
            o.bound[1].count = v / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
    }
    *out = o;
    return o.symbol != NULL && o.string != NULL && (o.hash != NULL || o.chain != NULL);
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
    for (const ElfW(Verdef) *d = o->defined; d != NULL;) {
        const ElfW(Verdaux) *name = (const void *)((const char *)d + d->vd_aux);
        if ((d->vd_ndx & ~HIDDEN) == index) {
            return same(o->string + name->vda_name, version);
        }
        d = d->vd_next != 0 ? (const void *)((const char *)d + d->vd_next) : NULL;
    }
    return false;
}

const char fl_object_any[] = "";

/* 2: it is the one; 1: it is where none is better; 0: it is not. */
static int match(const struct fl_object *o, uint32_t i, const char *name, const char *version)
{
    const ElfW(Sym) *s = &o->symbol[i];
    unsigned type = ELF64_ST_TYPE(s->st_info);
    bool is_known =
        type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE || type == STT_OBJECT;

    if (s->st_shndx == SHN_UNDEF || s->st_value == 0 || !is_known ||
        ELF64_ST_BIND(s->st_info) == STB_LOCAL || !same(fl_object_name(o, s), name)) {
        return 0;
    }
    if (o->version == NULL) {
        return 2;
    }
    unsigned v = o->version[i], index = v & ~(unsigned)HIDDEN;
    if (version != NULL && index > UNVERSIONED && is_version(o, index, version)) {
        return 2;
    }
    return index != 0 && ((v & HIDDEN) == 0 || version == fl_object_any) ? 1 : 0;
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

/* DT_GNU_HASH: the numbers of buckets, of the first symbol, of the filter's words and of a shift,
 * then the filter, the buckets, and a word for each symbol. */
static const uint32_t *buckets_of(const struct fl_object *o)
{
    return o->hash + 4 + o->hash[2] * sizeof(ElfW(Addr)) / sizeof(uint32_t);
}

/* Of symbol `i`: its hash without the last bit, which says that its bucket ends. */
static uint32_t link_of(const struct fl_object *o, size_t i)
{
    return (buckets_of(o) + o->hash[0])[i - o->hash[1]];
}

static uint32_t find_by_gnu_hash(const struct fl_object *o, const char *name, const char *version)
{
    enum { WORD_BITS = 8 * sizeof(ElfW(Addr)) };
    const ElfW(Addr) *filter = (const void *)(o->hash + 4);
    uint32_t h = 5381, best = 0;
    int rank = 0;

    for (const char *c = name; *c != '\0'; c++) {
        h = h * 33 + (unsigned char)*c;
    }
    ElfW(Addr) word = filter[h / WORD_BITS % o->hash[2]];
    if ((word >> h % WORD_BITS & word >> (h >> o->hash[3]) % WORD_BITS & 1) == 0) {
        return 0;
    }
    uint32_t i = buckets_of(o)[h % o->hash[0]];
    for (bool more = i >= o->hash[1]; more; i++) {
        uint32_t is = link_of(o, i);
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

    if (buckets == 0) {
        return 0;
    }
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
static void *decided(const void *function)
{
#if defined(__aarch64__)
    static const uint64_t has_more = (uint64_t)1 << 62; /* _IFUNC_ARG_HWCAP */
    const uint64_t more[] = {3 * sizeof(uint64_t), fl_sys_auxval(AT_HWCAP),
                             fl_sys_auxval(AT_HWCAP2)};
    void *(*decide)(uint64_t, const uint64_t *);

    *(const void **)(void *)&decide = function;
    return decide(more[1] | has_more, more);
#else
    void *(*decide)(void);

    *(const void **)(void *)&decide = function;
    return decide();
#endif
}

ElfW(Sym) * fl_object_symbol(const struct fl_object *o, const char *name, const char *version)
{
    uint32_t i =
        o->hash != NULL ? find_by_gnu_hash(o, name, version) : find_by_hash(o, name, version);

    return i != 0 ? &o->symbol[i] : NULL;
}

void *fl_object_find(const struct fl_object *o, const char *name, const char *version)
{
    const ElfW(Sym) *s = fl_object_symbol(o, name, version);

    if (s == NULL) {
        return NULL;
    }
    void *f = fl_object_at(o, s->st_value);
    return ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC ? decided(f) : f;
}

size_t fl_object_first(const struct fl_object *o)
{
    return o->hash != NULL ? o->hash[1] : 1;
}

size_t fl_object_end(const struct fl_object *o)
{
    size_t last = 0;

    if (o->hash == NULL) {
        return o->chain[1];
    }
    for (size_t b = 0; b < o->hash[0]; b++) {
        last = fl_max(last, buckets_of(o)[b]);
    }
    if (last == 0) {
        return fl_object_first(o);
    }
    while ((link_of(o, last) & 1) == 0) {
        last++;
    }
    return last + 1;
}

/* The segment of that type, with these flags, that `value` is in, or any; objects are mapped from
 * their header on. NULL: none. */
static const ElfW(Phdr) *
    segment(const struct fl_object *o, uint32_t type, uint32_t flags, const uintptr_t *value)
{
    const ElfW(Ehdr) *file = fl_object_at(o, 0);
    const ElfW(Phdr) *p = fl_object_at(o, file->e_phoff), *end = p + file->e_phnum;

    for (; p < end; p++) {
        if (p->p_type == type && (p->p_flags & flags) == flags &&
            (value == NULL || *value - p->p_vaddr < p->p_memsz)) {
            return p;
        }
    }
    return NULL;
}

void **fl_object_word(const struct fl_object *o, const ElfW(Rela) * r)
{
    uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
    bool binds = type == BINDS_CALL || type == BINDS_DATA || type == BINDS_WORD;

    return binds && segment(o, PT_LOAD, PF_W, &r->r_offset) != NULL ? fl_object_at(o, r->r_offset)
                                                                    : NULL;
}

struct fl_range fl_object_protected(const struct fl_object *o)
{
    const ElfW(Phdr) *p = segment(o, PT_GNU_RELRO, 0, NULL);

    if (p == NULL) {
        return (struct fl_range){0, 0};
    }
    uintptr_t from = fl_align_down(o->base + p->p_vaddr, fl_page.base);
    uintptr_t to = fl_align_down(o->base + p->p_vaddr + p->p_memsz, fl_page.base);
    return (struct fl_range){from, to - from};
}
