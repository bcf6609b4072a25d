/* Opt-in hardening of large blocks: guard pages, quarantine, zero and junk fill, sized frees that
 * are checked. Included by alloc.h.
 *
 * With any of it on, thread caches and plans are off: each large request comes from the region and
 * goes back there, and alloc/ asks here on those two ways alone. With all of it off the library
 * never comes here. */
#ifndef FL_ALLOC_HARDEN_H
#define FL_ALLOC_HARDEN_H

#include "plan/plan.h"

enum fl_request_kind { FL_REQUEST_MALLOC, FL_REQUEST_CALLOC, FL_REQUEST_ALIGNED };

/* Constant after boot. */
struct fl_harden {
    bool on;    /* any of what follows */
    bool check; /* sized and aligned frees must name what was asked for */
    bool zero, junk;
    size_t quarantine; /* bytes of freed blocks that are kept out of use; 0: none */
    uint64_t guard;    /* 0: no block has a guard page; else one in so many has */
    unsigned char
        canary[8]; /* by the last bits of the address; none is 0, as most overflows write */
    struct fl_region *region;
};

extern FL_HIDDEN struct fl_harden fl_harden;

/* What the options say. After fl_region_start.  Context: boot only. */
void fl_harden_start(struct fl_region *r, const struct fl_options *o);

/* A block of `n` bytes; NULL: the region has none. errno is kept.
 *   align   what the program asked for, of FL_REQUEST_ALIGNED alone. */
void *fl_harden_take(size_t n, size_t align, enum fl_request_kind kind);

/* The block that begins at `p`; NULL: none does. Lock-free. */
struct fl_extent *fl_harden_find(const void *p);
size_t fl_harden_usable(const void *p);

/* Frees a block that does not begin where its extent does; false: `p` is none such. errno is
 * kept. */
bool fl_harden_free(void *p);
/* Gives the claimed `e` back, whose block is said to begin at `p`. A line and abort when something
 * is wrong with it. Signals: as fl_region_defer, where fl_region_busy. */
void fl_harden_give(struct fl_extent *e, const void *p);

/* `call` frees `p`, anything, and says what it is: a line and abort when a block begins there that
 * was asked for otherwise.
 *   size   SIZE_MAX: not said. */
void fl_harden_check(const char *call, const void *p, size_t align, size_t size);

#endif
