/* SPDX-License-Identifier: Apache-2.0 */
/* The live page: where in a process the counters of libfaultless lie, for who reads them from
 * outside (faultstat top). No interface for programs: these call fl_stats_read.
 *
 * The library fills one page at boot and writes it never again. It holds no figure: each is a sum
 * of terms, words in the library's own memory, which a reader fetches with process_vm_readv(2). So
 * the library's counters stay where they are, a reader that is not there costs nothing, and there
 * is no file and no descriptor.
 *
 * An ELF note, name "faultless", type FL_LIVE_NOTE, leads to the page: its contents are an int64_t,
 * the page's address less that of the int64_t.
 *
 * All is little-endian, in the process's own layout, without padding. A reader trusts nothing of
 * it: another program may have forged it. docs/internals/live.md has the rules. */
#ifndef FAULTLESS_LIVE_H
#define FAULTLESS_LIVE_H

#include <stdint.h>

enum {
    FL_LIVE_VERSION = 2, /* raised when an older reader would be wrong; else fields are added */
    FL_LIVE_NOTE = 0x4c46,
    FL_LIVE_LISTS = 20,
    FL_LIVE_TERMS = 64,
    FL_LIVE_ELEMENT = 4096,  /* bytes of an element that are read, at most */
    FL_LIVE_LAST = 0xffff,   /* a list's `next`: there is no other element */
    FL_LIVE_ALWAYS = 0xffff, /* a term's `when` */
    FL_LIVE_STATES = 4,      /* of a context: learn, pack, serve, rest */
};

#define FL_LIVE_MAGIC "FLTLIVE"

/* What terms are added up for. Numbers stay; new ones are added at the end, and a reader leaves out
 * what it does not know. Bytes where the name says so, else counts. */
enum fl_live_figure {
    FL_LIVE_ACTIVE, /* as in struct fl_stats, likewise below */
    FL_LIVE_HOME,   /* 0: a child of fork that the library does not serve */
    FL_LIVE_RUNG,
    FL_LIVE_UNPROVEN, /* 1: how pages move is not known yet */
    FL_LIVE_REQUESTS,
    FL_LIVE_CACHE_HITS,
    FL_LIVE_STALLS,
    FL_LIVE_LAZY,
    FL_LIVE_REFUSED,
    FL_LIVE_LIVE_BYTES,    /* of blocks that the program has, in whole pages */
    FL_LIVE_RESERVE_BYTES, /* held, and in no block: free, cached, in plans' arenas, in the stock */
    FL_LIVE_HELD_BYTES,    /* populated_bytes */
    FL_LIVE_STOCK_BYTES,
    FL_LIVE_SERVED_BYTES,
    FL_LIVE_POPULATE_BYTES,
    FL_LIVE_PURGE_BYTES,
    FL_LIVE_MOVE_BYTES,
    FL_LIVE_PLAN_HITS,
    FL_LIVE_PLAN_MISSES,
    FL_LIVE_PLAN_STEPS,
    FL_LIVE_PLAN_LAYOUTS,
    FL_LIVE_PLAN_DROPS,
    FL_LIVE_STATE, /* contexts that learn; and FL_LIVE_STATES in all, one after the other */
    FL_LIVE_WINDOW = FL_LIVE_STATE + FL_LIVE_STATES, /* the address from which blocks lie */
    FL_LIVE_WINDOW_BYTES,                            /* of addresses */
    FL_LIVE_SHADOWED, /* not 0: another's malloc comes first, and has not come to ours; its file's
                       * name lies there */
    FL_LIVE_FIGURES,
};

enum fl_live_shape {
    FL_LIVE_ROW,   /* `count` elements from `at` on, `next` bytes from one to the next */
    FL_LIVE_CHAIN, /* `at`: a pointer to the first one; `next`: where in it that to the next is */
    FL_LIVE_TABLE, /* `at`: pointers side by side; `count`: the address of their number, 32 bits */
};

/* Where elements lie that have the same terms. */
struct fl_live_list {
    uint64_t at, count;
    uint32_t from, size; /* the bytes of each element that are read; `next` is among a chain's */
    uint16_t shape, next;
    uint32_t spare;
};

enum fl_live_how {
    FL_LIVE_ADD,   /* the word at `offset` */
    FL_LIVE_ONE,   /* 1 */
    FL_LIVE_TALLY, /* 1, to the figure that comes so many after `figure` as the word says */
    FL_LIVE_BITS,  /* the bits that are set among those that the word points to */
};

/* `figure` gets what `how` says of each element of `list`, times 2^shift, added or subtracted. */
struct fl_live_term {
    uint16_t figure;
    uint8_t list, how;
    uint8_t width;         /* bytes of the word: 1, 4 or 8 */
    uint8_t when_width;    /* likewise, of the one at `when` */
    uint8_t shift;         /* at most 30 */
    uint8_t subtracts;     /* 1, or 0 */
    uint16_t offset, when; /* in the element; where the word at `when` is 0 it has no such term */
    uint16_t bits;         /* FL_LIVE_BITS: where their number is, 64 bits wide */
    uint16_t spare;
};

struct fl_live_page {
    char magic[8];          /* FL_LIVE_MAGIC; written last */
    uint32_t version;       /* FL_LIVE_VERSION */
    uint32_t size;          /* bytes of the page */
    char library[16];       /* fl_version(), for people */
    uint32_t nlists, lists; /* how many, and where they begin in the page */
    uint32_t nterms, terms; /* likewise */
    struct fl_live_list list[FL_LIVE_LISTS];
    struct fl_live_term term[FL_LIVE_TERMS];
    uint64_t profile; /* address of the profile's head (profile.h); 0: there is none */
};

#endif
