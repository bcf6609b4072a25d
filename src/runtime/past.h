/* What binds past us. The dynamic linker looks a name up in libc before it does in us for objects
 * that were loaded with RTLD_DEEPBIND, for dlsym(3) of a handle, and behind us (RTLD_NEXT); and a
 * namespace of dlmopen(3) has a libc of its own. Under glibc a block of the program may be freed by
 * what was found so.
 *
 * Nothing is done until a program asks for such a thing. Then names of that libc are diverted to
 * us: what any object finds there from then on knows our blocks. The table's pages are the
 * process's own copy.  Threads: any.  Context: as dlopen(3). errno stays. */
#ifndef FL_RUNTIME_PAST_H
#define FL_RUNTIME_PAST_H

#include "base/base.h"

/* An object is about to be loaded that looks into libc first. */
void fl_past_deep(void);
/* A namespace is about to be opened, or to get objects. */
void fl_past_namespace(void);
/* `name` is about to be looked up by `handle`, for code at `caller`; dlvsym(3): versioned. */
void fl_past_lookup(void *handle, const char *name, bool versioned, const void *caller);

/* Takes this library's functions in [from, to) out of its symbol table: what is loaded from now on
 * does not find them. One thread at a time. */
void fl_past_hide(const char *from, const char *to);

/* For past.c and past_namespace.c alone. is_wanted: false amid boot, which looks up what libc has,
 * and where no block is ours. give_up: no more blocks are made, for one that there is must not get
 * to what binds past us; `what` is said once. namespace_of: a name is about to be looked up by
 * `handle`; of another namespace, its libc is diverted. */
bool fl_past_is_wanted(void);
void fl_past_give_up(const char *what);
void fl_past_namespace_of(void *handle);

/* libc's function that is diverted to `f`; `f`, where none is. */
void *fl_past_original(void *f);

#endif
