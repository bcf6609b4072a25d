/* A loaded object as the dynamic linker reads it: names, where they lead, what was bound. */
#ifndef FL_RUNTIME_ELF_H
#define FL_RUNTIME_ELF_H

#include "base/base.h"

#include <link.h>

struct fl_elf {
    uintptr_t base; /* what addresses in the object are relative to */
    ElfW(Sym) * symbols;
    const char *names;
    size_t names_len;
    const ElfW(Half) * versions; /* of each symbol; NULL: none */
    const uint32_t *hash;        /* DT_GNU_HASH */
    struct fl_elf_bound {
        const ElfW(Rela) * first;
        size_t count;
    } bound[2]; /* DT_RELA, DT_JMPREL */
};

/* False: the object has no DT_GNU_HASH. */
bool fl_elf_read(struct fl_elf *out, uintptr_t base, const ElfW(Dyn) * dynamic);

/* The definition that an unversioned search finds; NULL: none. */
const ElfW(Sym) * fl_elf_find(const struct fl_elf *e, const char *name);

/* What the object defines for others are its symbols [first, end). */
size_t fl_elf_first(const struct fl_elf *e);
size_t fl_elf_end(const struct fl_elf *e);

static inline const char *fl_elf_name(const struct fl_elf *e, const ElfW(Sym) * s)
{
    return e->names + s->st_name;
}

/* An address in the object, or what it has as one. */
static inline void *fl_elf_at(const struct fl_elf *e, uintptr_t value)
{
    return (void *)(e->base + value); /* NOLINT(performance-no-int-to-ptr): a loaded object */
}

/* The word that a relocation gives the address of a function; NULL: it does something else, or to
 * what is not data. */
void **fl_elf_word(const struct fl_elf *e, const ElfW(Rela) * r);

/* The pages that the dynamic linker protects when the object is bound. */
struct fl_range fl_elf_protected(const struct fl_elf *e);

#endif
