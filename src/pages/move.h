/* Moves: populated pages go from one range to another without a copy. Included by pages.h. */
#ifndef FL_PAGES_MOVE_H
#define FL_PAGES_MOVE_H

#include "core/core.h"

struct fl_pages;

/* How populated pages get from one place to another. Found by trying: never climbed again. */
enum fl_move_method {
    FL_METHOD_MOVE,  /* UFFDIO_MOVE, Linux 6.8 */
    FL_METHOD_REMAP, /* mremap(2): moves maps along */
    FL_METHOD_NONE,  /* not at all */
};

struct fl_mover {
    enum fl_move_method best; /* that may be tried. Constant after the start */
    struct fl_range trial;    /* two base pages of the window that no block gets. Likewise */
    struct fl_lock lock;      /* held while anything moves. Rank LEAF */
    unsigned remaps;          /* maps that mremap has made. Lock: the one above */
    _Atomic uint32_t method;  /* enum fl_move_method */
    _Atomic bool unproven;    /* the probe is still to be made. Relaxed: a hint */
    _Atomic int refusal;      /* -errno that made it fall; 0: it did not */
};

/* A batch of moves to `to`, which is mapped, not populated, and the caller's alone. */
struct fl_move {
    struct fl_range to;
    unsigned zone; /* of source and target */
    int fd;
    enum fl_move_method method;
    uint64_t blocked; /* signals, before it began */
};

/* `best` may be tried. `trial`: two base pages of the window that no block gets.  Context: boot. */
void fl_move_start(struct fl_pages *p, enum fl_move_method best, struct fl_range trial);

/* Tries whether pages can be moved: then `method` says how. Some 20 us. No lock held. */
void fl_move_probe(struct fl_pages *p);
/* The same when it is first of use, and once. A process that frees nothing does without. */
void fl_move_prove_later(struct fl_pages *p);
/* It is of use now: pages are about to move, or what depends on that. No lock held.  Cost: a load,
 * where nothing is to be proven. */
void fl_move_prove(struct fl_pages *p);

/* False: nothing can be moved. No lock held; between begin and end fl_is_busy is true, and
 * the thread's signals wait. */
bool fl_move_begin(struct fl_pages *p, struct fl_move *m, struct fl_range to, unsigned zone);
/* Moves the whole huge pages `from` to `to`. Returns bytes moved, from its start: less where pages
 * are pinned, shared with a child, or in the way; then part of a huge page may have moved, and the
 * number says so. Where they lay is still mapped, with nothing in it. */
size_t fl_move_pages(struct fl_pages *p, struct fl_move *m, struct fl_range from, uintptr_t to);
/* The same of huge pages that may be hollow: where nothing is, nothing comes, and the first touch
 * there brings a huge page. */
size_t fl_move_hollow(struct fl_pages *p, struct fl_move *m, struct fl_range from, uintptr_t to);
void fl_move_end(struct fl_pages *p, struct fl_move *m);
/* mremap(2) of what is mapped at `from` to `to`, which is mapped too, the caller's alone, and in no
 * reserved span. What was advised comes along. 0 or -errno; then `to` is mapped as before (kernels
 * before 6.17 unmap it and then refuse where `from` is more than one map). */
int fl_move_map(struct fl_pages *p, struct fl_range from, uintptr_t to, unsigned zone);
/* realloc in a confined process, where nothing else moves: by_map is as fl_move_pages on the
 * lower method. may_map: is a block so long that glibc's realloc would call mremap(2) for it,
 * and may maps move? No lock held. */
bool fl_move_may_map(const struct fl_pages *p, size_t len);
size_t fl_move_by_map(struct fl_pages *p, struct fl_range from, uintptr_t to, unsigned zone);

#endif
