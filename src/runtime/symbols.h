/* Symbol tables of loaded objects: where libc's is, what a name leads to there, and how it is made
 * to lead elsewhere. The table's pages are the process's own copy. Context: under the loader's lock
 * where it is written, or before other threads. */
#ifndef FL_RUNTIME_SYMBOLS_H
#define FL_RUNTIME_SYMBOLS_H

#include "sys/sys.h"

/* A function, and ours in its place. */
struct fl_diversion {
    void *to, *was;
};

/* False: it has no symbols. This library is found by its own address. */
bool fl_symbols_read(struct fl_object *out, const struct link_map *m);
bool fl_symbols_read_us(struct fl_object *out);
/* Does that lie within this library? */
bool fl_symbols_is_ours(const void *f);

/* The first object of the namespace that `m` is in; and its libc, NULL: it has none. */
const struct link_map *fl_symbols_first(const struct link_map *m);
const struct link_map *fl_symbols_of_libc(const struct link_map *m, struct fl_object *out);

/* Makes the table writable, and not any more. open: false where code may lie in its pages. */
bool fl_symbols_open(const struct fl_object *e);
void fl_symbols_close(const struct fl_object *e);
/* mprotect(2), past what stands before libc's. */
int fl_symbols_protect(struct fl_range r, int prot);

/* libc's function of that name; NULL: it has none, or it is diverted. */
void *fl_symbols_function(const struct fl_object *libc, const char *name);
/* Every name of the function, such as __libc_free of free. The table is open. */
void fl_symbols_divert(const struct fl_object *libc, struct fl_diversion one);

#endif
