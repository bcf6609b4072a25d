/* A loaded object, as the dynamic linker reads it. Included by sys.h. */
#ifndef FL_SYS_OBJECT_H
#define FL_SYS_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

/* The symbols of an object that is in memory: its file's, as the dynamic linker looks them up. */
struct fl_object {
    uintptr_t base;        /* what is added to its file's addresses */
    const void *symbol;    /* of type ElfW(Sym) */
    const char *string;    /* their names */
    const uint32_t *hash;  /* DT_GNU_HASH; NULL: none */
    const uint32_t *chain; /* DT_HASH; NULL: none */
    const uint16_t *version;
    const void *defined; /* the versions' names, of type ElfW(Verdef) */
};

/* By its dynamic section, of type ElfW(Dyn). False: it has no symbols. Calls nothing. */
bool fl_object_read(struct fl_object *out, uintptr_t base, const void *dynamic);
/* Where the object defines `name`: with that version, or by default, which is what a program gets
 * that asks for none (`version` NULL). NULL: nowhere. Calls nothing, but for what decides on an
 * indirect function. */
void *fl_object_find(const struct fl_object *o, const char *name, const char *version);

#endif
