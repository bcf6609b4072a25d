/* Sources: System V ABI, dynamic linking; its supplements for x86-64 and AArch64; glibc,
 * elf/dl-lookup.c (DT_GNU_HASH). */
#include "runtime/elf.h"

#include "sys/sys.h"

#include <string.h>

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

/* DT_GNU_HASH begins with this, then words of the filter, buckets, and a word a symbol. */
struct head {
    uint32_t buckets, first, filters, shift;
};

enum { FILTER_BITS = 8 * sizeof(ElfW(Addr)), HIDDEN = 0x8000, TYPE_MASK = 0xffffffff };

/* glibc adds the base to the pointers of a dynamic section that it may write to. */
static void *pointer(uintptr_t base, ElfW(Addr) value)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a loaded object */
    return (void *)(value < base ? base + value : value);
}

bool fl_elf_read(struct fl_elf *out, uintptr_t base, const ElfW(Dyn) * d)
{
    struct fl_elf e = {.base = base};

    for (; d->d_tag != DT_NULL; d++) {
        void *p = pointer(base, d->d_un.d_ptr);
        switch (d->d_tag) {
        case DT_SYMTAB:
            e.symbols = p;
            break;
        case DT_STRTAB:
            e.names = p;
            break;
        case DT_STRSZ:
            e.names_len = d->d_un.d_val;
            break;
        case DT_VERSYM:
            e.versions = p;
            break;
        case DT_GNU_HASH:
            e.hash = p;
            break;
        case DT_RELA:
            e.bound[0].first = p;
            break;
        case DT_RELASZ:
            e.bound[0].count = d->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_JMPREL:
            e.bound[1].first = p;
            break;
        case DT_PLTRELSZ:
            e.bound[1].count = d->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
    }
    *out = e;
    return e.hash != NULL && e.symbols != NULL && e.names != NULL;
}

static const struct head *head_of(const struct fl_elf *e)
{
    return (const struct head *)(const void *)e->hash;
}

static const ElfW(Addr) * filter_of(const struct fl_elf *e)
{
    return (const ElfW(Addr) *)(const void *)(e->hash + sizeof(struct head) / sizeof(uint32_t));
}

static const uint32_t *buckets_of(const struct fl_elf *e)
{
    return (const uint32_t *)(const void *)(filter_of(e) + head_of(e)->filters);
}

/* Of symbol `i`: its hash without the last bit, which says that its bucket ends. */
static const uint32_t *chain_of(const struct fl_elf *e, size_t i)
{
    return buckets_of(e) + head_of(e)->buckets + (i - head_of(e)->first);
}

static uint32_t hash_of(const char *name)
{
    uint32_t h = 5381;

    for (; *name != '\0'; name++) {
        h = h * 33 + (unsigned char)*name;
    }
    return h;
}

static bool may_have(const struct fl_elf *e, uint32_t hash)
{
    const struct head *h = head_of(e);
    ElfW(Addr) word = filter_of(e)[hash / FILTER_BITS % h->filters];

    return (word >> hash % FILTER_BITS & word >> (hash >> h->shift) % FILTER_BITS & 1) != 0;
}

const ElfW(Sym) * fl_elf_find(const struct fl_elf *e, const char *name)
{
    uint32_t hash = hash_of(name);
    const ElfW(Sym) *found = NULL;

    if (!may_have(e, hash)) {
        return NULL;
    }
    size_t i = buckets_of(e)[hash % head_of(e)->buckets];
    for (bool more = i != 0; more; i++) {
        const ElfW(Sym) *s = &e->symbols[i];
        uint32_t link = *chain_of(e, i);
        if ((link | 1) == (hash | 1) && strcmp(fl_elf_name(e, s), name) == 0) {
            found = s;
            if (e->versions == NULL || (e->versions[i] & HIDDEN) == 0) {
                return s;
            }
        }
        more = (link & 1) == 0;
    }
    return found;
}

size_t fl_elf_first(const struct fl_elf *e)
{
    return head_of(e)->first;
}

size_t fl_elf_end(const struct fl_elf *e)
{
    size_t last = 0;

    for (size_t b = 0; b < head_of(e)->buckets; b++) {
        last = fl_max(last, buckets_of(e)[b]);
    }
    if (last == 0) {
        return fl_elf_first(e);
    }
    while ((*chain_of(e, last) & 1) == 0) {
        last++;
    }
    return last + 1;
}

/* Objects are mapped from their header on. */
static const ElfW(Ehdr) * header_of(const struct fl_elf *e)
{
    return fl_elf_at(e, 0);
}

static const ElfW(Phdr) * segments_of(const struct fl_elf *e)
{
    return fl_elf_at(e, header_of(e)->e_phoff);
}

static bool is_data(const struct fl_elf *e, uintptr_t value)
{
    const ElfW(Phdr) *p = segments_of(e);

    for (size_t i = 0; i < header_of(e)->e_phnum; i++) {
        if (p[i].p_type == PT_LOAD && (p[i].p_flags & PF_W) != 0 &&
            value - p[i].p_vaddr < p[i].p_memsz) {
            return true;
        }
    }
    return false;
}

void **fl_elf_word(const struct fl_elf *e, const ElfW(Rela) * r)
{
    uint32_t type = (uint32_t)(r->r_info & TYPE_MASK);
    bool binds = type == BINDS_CALL || type == BINDS_DATA || type == BINDS_WORD;

    return binds && is_data(e, r->r_offset) ? fl_elf_at(e, r->r_offset) : NULL;
}

struct fl_range fl_elf_protected(const struct fl_elf *e)
{
    const ElfW(Phdr) *p = segments_of(e);

    for (size_t i = 0; i < header_of(e)->e_phnum; i++) {
        if (p[i].p_type == PT_GNU_RELRO) {
            uintptr_t from = fl_align_down(e->base + p[i].p_vaddr, fl_page.base);
            uintptr_t to = fl_align_down(e->base + p[i].p_vaddr + p[i].p_memsz, fl_page.base);
            return (struct fl_range){from, to - from};
        }
    }
    return (struct fl_range){0, 0};
}
