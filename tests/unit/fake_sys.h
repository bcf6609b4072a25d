/* A kernel for tests: fl_sys replaced by a table that records each call, can refuse it, and keeps
 * real memory behind.
 *
 * What is scripted: files for read_file, limits, the clock, the largest reservation, one failing
 * call of a sequence; what is told of single huge pages.
 * What is real: reserved, committed and populated memory, so that tests touch it and a purge really
 * drops it. Pages that move leave nothing behind, and go only where nothing is; children do not get
 * what they are not to have.
 * State: one `fake` a process. Threads: the log has a lock; `quiet` leaves log and lock out, so
 * that TSan sees the product's own order and nothing else. */
#ifndef FL_TESTS_UNIT_FAKE_SYS_H
#define FL_TESTS_UNIT_FAKE_SYS_H

#include "sys/sys.h"

enum fake_slot {
    FAKE_RESERVE,
    FAKE_MAP_AT,
    FAKE_MAP_HUGETLB,
    FAKE_UNMAP,
    FAKE_COMMIT,
    FAKE_DECOMMIT,
    FAKE_ADVISE,
    FAKE_POPULATE,
    FAKE_LAZY_FREE,
    FAKE_MOVE_BEGIN, /* its range: where to */
    FAKE_MOVE,       /* its range: where from */
    FAKE_REMAP,      /* likewise */
    FAKE_FIND_SPLIT,
    FAKE_SURVEY,
    FAKE_RESIDENT,
    FAKE_TOUCHED,
    FAKE_PRESENT,
    FAKE_NAME,
    FAKE_READ_FILE,
    FAKE_SLOTS
};

struct fake_call {
    enum fake_slot slot;
    struct fl_range range; /* zero for read_file */
    int rc;
    enum fl_sys_advice advice; /* of FAKE_ADVISE */
};

/* A huge page that find_split and survey know something of; of all others they say: whole, and the
 * process's own. */
struct fake_page {
    uintptr_t base;
    size_t present, own; /* bytes, as survey has it */
    bool whole;          /* mapped by one entry still: find_split does not see it */
    int refusal;         /* of a collapse that comes to it; 0: none */
};

enum { FAKE_LOG = 4096, FAKE_FILES = 24, FAKE_SAID = 8192, FAKE_MAPS = 4096, FAKE_PAGES = 512 };

struct fake {
    /* the script */
    bool no_quiet_addresses; /* map_at is refused: as where something lies there, or under TSan */
    size_t reserve_max;      /* bytes; a larger reservation is refused with -ENOMEM */
    unsigned reserve_skip;   /* this many reservations pass before reserve_refuse counts */
    unsigned reserve_refuse; /* this many are refused with -ENOMEM, then they pass again */
    size_t commit_max;       /* bytes of one commit or map_at; more is refused with -ENOMEM */
    size_t charge_max;       /* bytes readable and writable at most, as RLIMIT_DATA has it */
    uint64_t limit_as, limit_data, memory_total, swap_total, entropy;
    int rc[FAKE_SLOTS];    /* not 0: what the slot answers, always */
    bool pretend_populate; /* populate takes note; the kernel fills on touch */
    /* What is given back may have holes: mremap leaves them where map_at is refused after it. */
    bool holes;
    size_t hugetlb;      /* bytes of the page that map_hugetlb was asked for last */
    bool quiet;          /* no log, no lock */
    size_t move_most;    /* bytes that one move_pages moves before it says -EAGAIN; 0: all */
    unsigned moves_open; /* begun and not ended */
    /* Called within each move_pages and remap: its answer, if it is not 0, is theirs; *most: bytes
     * that move before that (remap: all or nothing). */
    int (*on_move)(struct fl_range from, uintptr_t to, size_t *most);
    void (*on_survey)(struct fl_range r);
    struct fake_page page[FAKE_PAGES]; /* a collapse that is not refused takes its pages out */
    size_t npages;
    void (*on_purge)(void);            /* called within each unmap and decommit */
    void (*on_map)(struct fl_range r); /* and each map_at and commit */
    void (*on_populate)(struct fl_range r);
    void (*on_lazy_free)(struct fl_range r);
    void (*on_read_file)(void);
    unsigned fail_at;    /* the n-th call of a slot in fail_slots is refused; 0: none */
    unsigned fail_slots; /* bit s: enum fake_slot s counts */
    bool grants_no_huge; /* FL_ADVICE_NO_HUGE is not refused, so khugepaged fills no holes */
    bool fail_enomem;    /* map_at is then refused for want of memory, not of addresses */
    /* what happened */
    unsigned ncalls;         /* calls of slots in fail_slots since fail_at was set */
    enum fake_slot failed;   /* the slot that the fault hit */
    _Atomic uint64_t now_ns; /* the clock; only tests move it */
    /* Where a thread last went to sleep for a lock, or another word. */
    _Atomic uint32_t *_Atomic waited_for;
    uint64_t lost_ns; /* of it: other threads had the processor */
    struct fake_call log[FAKE_LOG];
    size_t nlog; /* calls since fake_forget; the first FAKE_LOG are kept */
    unsigned count[FAKE_SLOTS];
    /* calls of populate_shared, each of which counts as one of populate too; helpers that the last
     * of them asked for */
    _Atomic unsigned shared, helpers;
    char said[FAKE_SAID]; /* all of it that went to stderr */
    size_t nsaid;
    struct fake_map {
        struct fl_range range;
        bool usable;  /* readable and writable */
        bool no_fork; /* no child gets it */
        bool no_dump; /* in no core dump */
    } map[FAKE_MAPS]; /* what is mapped; neighbours of a kind are one */
    size_t nmap;
    struct {
        const char *path, *text;
    } file[FAKE_FILES];
    size_t nfile;
};

extern struct fake fake;

/* Puts the table in place with: page sizes 4 KiB and 2 MiB, THP madvise, MemAvailable 14 GiB of 16,
 * no cgroup, no limits, reservations up to 1100 MiB. FL_TEST_WINDOW=reserved in the environment,
 * and TSan, whose shadow lies there, set no_quiet_addresses. Unmaps what an earlier test left. */
void fake_install(void);
/* Scripts one file; `text` NULL: it is not there. Both stay the caller's. */
void fake_file(const char *path, const char *text);
/* Forgets log, counts and what was said. */
void fake_forget(void);
/* The i-th logged call of the slot; fails the test when there is none. */
const struct fake_call *fake_nth(enum fake_slot slot, size_t i);
/* Bytes of all logged calls of that slot that were answered with 0. */
size_t fake_bytes(enum fake_slot slot);
/* Bytes given back: unmapped or decommitted. */
size_t fake_purged(void);
unsigned fake_purges(void);
/* Bytes mapped now, and those of them that are readable and writable. */
size_t fake_mapped(void);
size_t fake_usable(void);
/* Bytes of `r` that a child would not get. */
size_t fake_kept_from_child(struct fl_range r);
/* Bytes of `r` that a core dump would not have. */
size_t fake_hidden(struct fl_range r);
/* Sweeps failures: the n-th call of the slots (all but unmap, if `slots` is 0) is refused. */
void fake_fail_at(unsigned n, unsigned slots);
/* Did the fault of fake_fail_at fire? */
bool fake_fired(void);

/* Runs f in a child. True when it ended by SIGABRT; `out` gets its stderr. */
bool fake_dies(void (*f)(void), char *out, size_t size);
/* Runs f in a child, whose exit status (0 to 255) is what f returns; -1 when it ended otherwise.
 * What the child did not inherit is not mapped there, neither really nor in the fake's list. */
int fake_child(int (*f)(void));

#endif
