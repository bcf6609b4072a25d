/* A loaded object, as the dynamic linker reads it. Included by sys.h. */
#ifndef FL_SYS_OBJECT_H
#define FL_SYS_OBJECT_H

#include "base/base.h"

#include <link.h>

/* What the dynamic section of an object that is in memory tells. */
struct fl_object {
    uintptr_t base; /* what is added to its file's addresses */
    ElfW(Sym) * symbol;
    const char *string; /* the symbols' names */
    size_t string_len;
    const uint32_t *hash;         /* DT_GNU_HASH; NULL: none */
    const uint32_t *chain;        /* DT_HASH; NULL: none */
    const ElfW(Half) * version;   /* of each symbol; NULL: none */
    const ElfW(Verdef) * defined; /* the versions' names */
    struct fl_object_bound {
        const ElfW(Rela) * first;
        size_t count;
    } bound[2]; /* DT_RELA, DT_JMPREL */
};

/* False: it has no symbols. Calls nothing. */
bool fl_object_read(struct fl_object *out, uintptr_t base, const ElfW(Dyn) * dynamic);
/* The object's definition of `name`: with that version, or by default, which is what a program gets
 * that asks for none (`version` NULL); fl_object_any: or with whatever version. NULL: it has none.
 * Calls nothing. */
extern FL_HIDDEN const char fl_object_any[];
ElfW(Sym) * fl_object_symbol(const struct fl_object *o, const char *name, const char *version);
/* Where that lies. Calls nothing, but for what decides on an indirect function. */
void *fl_object_find(const struct fl_object *o, const char *name, const char *version);
/* What the object defines for others is among its symbols [first, end). */
size_t fl_object_first(const struct fl_object *o);
size_t fl_object_end(const struct fl_object *o);
/* The word that a relocation gives the address of a function; NULL: it does something else, or to
 * what is not data. */
void **fl_object_word(const struct fl_object *o, const ElfW(Rela) * r);
/* The pages that the dynamic linker protects when the object is bound. */
struct fl_range fl_object_protected(const struct fl_object *o);

static inline const char *fl_object_name(const struct fl_object *o, const ElfW(Sym) * s)
{
    return o->string + s->st_name;
}

static inline void *fl_object_at(const struct fl_object *o, uintptr_t value)
{
    return (void *)(o->base + value); /* NOLINT(performance-no-int-to-ptr): a loaded object */
}

#endif
