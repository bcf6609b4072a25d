/* The option table; address space for our own descriptors and for the window; memory of our own.
 *
 * State: none of its own; callers own struct fl_options, fl_vspace and fl_own_memory. */
#ifndef FL_CORE_CORE_H
#define FL_CORE_CORE_H

#include "core/busy.h"
#include "sys/sys.h"

enum fl_disable {
    FL_DISABLE_ALL = 1 << 0,      /* pass every request through */
    FL_DISABLE_THP = 1 << 1,      /* base pages only */
    FL_DISABLE_POPULATE = 1 << 2, /* a touch loop instead of MADV_POPULATE_WRITE */
    FL_DISABLE_WORKER = 1 << 3,   /* no fl- thread: decay by requests, frees, malloc_trim */
    FL_DISABLE_CACHE = 1 << 4,    /* no thread caches */
    FL_DISABLE_STOCK = 1 << 5,    /* nothing populated ahead of demand */
    FL_DISABLE_MOVE = 1 << 6,     /* no UFFDIO_MOVE */
    FL_DISABLE_UFFD = 1 << 7,     /* no userfaultfd(2) at all */
    FL_DISABLE_URING = 1 << 8,    /* no io_uring: threads */
    FL_DISABLE_NUMA = 1 << 9,     /* as on a machine with one node */
    FL_DISABLE_PLAN = 1 << 10,    /* no step is learned */
};

enum fl_log_level { FL_LOG_NONE, FL_LOG_WARN, FL_LOG_INFO };

enum fl_numa {
    FL_NUMA_AUTO,
    FL_NUMA_OFF,
    FL_NUMA_FIRST_TOUCH,
    FL_NUMA_LOCAL,
    FL_NUMA_INTERLEAVE, /* text: its nodes, if any are named */
    FL_NUMA_BIND,       /* text: its nodes */
    FL_NUMA_BALANCE,
};

enum fl_thp { FL_THP_AUTO, FL_THP_COLLAPSE, FL_THP_OWN };
enum fl_trim { FL_TRIM_AUTO, FL_TRIM_GIVE, FL_TRIM_IGNORE };
enum fl_steps { FL_STEPS_DECLARED, FL_STEPS_OFF };
enum fl_filler { FL_FILLER_ZERO = 1, FL_FILLER_JUNK = 2 }; /* bits */

enum fl_option_id {
#define X(kind, name, ...) FL_OPTION_##name,
#include "core/options.def"
    FL_OPTION_OURS, /* so many have a variable FAULTLESS_<NAME>; others' variables set the rest */
    FL_OPTION_LAST_OF_OURS = FL_OPTION_OURS - 1,
#include "core/others.def"
#undef X
    FL_OPTION_COUNT
};

enum {
    FL_OPTION_TEXTS = 4096 + 256
}; /* bytes for the texts of all options: a path as long as they come */

#define FL_OPTION_OFF UINT64_MAX /* what GIBS says for a number below zero */

/* What %h and %r stand for in names of files: the host, and the rank that mpirun, torchrun or srun
 * gave this process ("0": none). Constant after boot; a fork's child has its parent's. */
struct fl_names {
    char host[65], rank[12];
};

/* `env`: NULL, as for AT_SECURE: no rank. Reads procfs.  Threads: boot only.  Context: early. */
void fl_names_read(struct fl_names *n, char *const env[]);
/* `name` with %p as `pid` (0: it stays), %h and %r; any other % stays. False: it is cut.  Signals:
 * safe. */
bool fl_names_expand(const struct fl_names *n, const char *name, int pid, char *out, size_t size);

/* ALIAS: by a name of others, see fl_options_aliases. */
enum fl_option_origin { FL_ORIGIN_DEFAULT, FL_ORIGIN_ENVIRONMENT, FL_ORIGIN_ALIAS };

/* Values by FL_OPTION_<name>. Texts are copies: a program may write its title over the environment
 * (setproctitle). */
struct fl_options {
    /* Unit as in the table; WORDS: bits of enum fl_disable; REAL and GIBS: millionths. */
    uint64_t value[FL_OPTION_COUNT];
    /* TEXT options: NULL when unset or empty. POLICY: the list of nodes behind the colon ("all", or
     * numbers below FL_NODE_IDS). */
    const char *_Atomic text[FL_OPTION_COUNT];
    enum fl_option_origin origin[FL_OPTION_COUNT];
    /* ALIAS: the name's row in the table of aliases.c, counted from 1. */
    uint8_t alias[FL_OPTION_COUNT];
    /* What a value of 0 comes to where it stands for automatic; 0: that is said in words. Written
     * by who knows it, for fl_options_confirm alone. */
    uint64_t automatic[FL_OPTION_COUNT];
    struct fl_names names; /* written by who read them */
    unsigned nbad;         /* values and names that were refused; each has had its line on stderr */
    unsigned ranks;        /* fl_ranks, written by the thread that asked; 0: not asked yet */
    size_t kept;           /* bytes of texts in use */
    char texts[FL_OPTION_TEXTS];
};

/* Fills `o` from the defaults and from `env` (NULL: defaults only, as for AT_SECURE). A wrong value
 * gets one line on stderr and the default; an unknown FAULTLESS_ name one line with the nearest
 * name. Threads: boot only.  Context: early. */
void fl_options_read(struct fl_options *o, char *const env[]);

/* One line an option on stderr: name, the value in force, origin: default, environment,
 * automatic. What only others' variables set has a line where one of them does, with its name. */
void fl_options_confirm(const struct fl_options *o);
/* After that: what is not set by our own name, and is by one that users of DeepRec, MXNet or
 * PaddlePaddle know. Of several the first in the table of aliases.c counts. What is not understood,
 * or out of our option's range, is said once and ignored. Cost: one pass over `env`, which looks at
 * an entry's first letter. */
void fl_options_aliases(struct fl_options *o, char *const env[]);
/* What `value` would be for that option: 0 and the number; -EINVAL; -ERANGE with the number. Says
 * nothing. */
int fl_option_parse(enum fl_option_id id, const char *value, uint64_t *out);
uint64_t fl_option_preset(enum fl_option_id id);
/* The option of that name, with FAULTLESS_ in front or without, in any case; -ENOENT. */
int fl_option_find(const char *name);
/* As if the environment said so; NULL: as if it did not. Errors as fl_option_parse, and -EINVAL for
 * a text that is too long, or for which there is no room: all that were ever set are kept. Says
 * nothing. Threads: one at a time; others may read meanwhile what is atomic. */
int fl_option_set_in(struct fl_options *o, enum fl_option_id id, const char *value);

/* Is there a % in any text?  Context: early. */
bool fl_options_want_names(const struct fl_options *o);
/* Replaces %p, %h and %r in that option's text, which is a file's name. What is too long then has
 * one line on stderr, and is unset.  Threads: boot only. */
void fl_options_expand(struct fl_options *o, enum fl_option_id id, int pid);

/* How many processes share this host's memory with this one, itself counted: FAULTLESS_HOST_SHARE,
 * else the launchers' variables in `env` (NULL, as for AT_SECURE: none). At least 1. A variable of
 * others that is not understood is ignored. Where one launcher starts another (mpirun, torchrun)
 * the greatest number counts. Threads: boot only.  Context: early. */
unsigned fl_ranks(const struct fl_options *o, char *const env[]);

/* A span of addresses and how its parts become memory.  Lock: the owner's, but for `grown`. */
struct fl_vspace {
    struct fl_range all;
    _Atomic size_t
        /* bytes from all.base that fl_vspace_grow made usable; only grows. Read without the lock */
        grown;
    bool reserved;        /* PROT_NONE lies where nothing is in use; else nothing is mapped there */
    _Atomic bool unnamed; /* the kernel takes no names. Relaxed: any thread finds it out */
    bool huge;            /* what fl_vspace_grow makes usable may be huge pages */
    const char *name;     /* shown in /proc/PID/maps */
    void (*mapped)(struct fl_range part); /* told of each part that is committed; NULL: none */
};

/* Takes `len` bytes of addresses. `at` != 0: exactly there, mapping nothing; -EEXIST when something
 * is mapped at its first page, or another -errno where such addresses do not exist. `at` 0:
 * anywhere at a multiple of `align`, reserved; -ENOMEM.  Context: early. */
int fl_vspace_claim(struct fl_vspace *v, size_t len, size_t align, uintptr_t at, const char *name);
void fl_vspace_release(struct fl_vspace *v);

/* Makes `part` (whole base pages, not committed) readable and writable, unpopulated. 0; -ENOMEM, or
 * -EEXIST when others have mapped something there, with nothing changed.
 *   huge  advise huge pages; else base pages. */
int fl_vspace_commit(struct fl_vspace *v, struct fl_range part, bool huge);
/* Gives memory, charge and map of `part` back. Its pages are gone when it returns 0; -errno with
 * nothing changed. */
int fl_vspace_decommit(struct fl_vspace *v, struct fl_range part);

/* For spans that are filled from the front: makes the first `upto` bytes usable. 0; -ENOMEM with
 * nothing changed. */
int fl_vspace_grow(struct fl_vspace *v, size_t upto);

enum { FL_OWN_CLASSES = 26, FL_OWN_WARM = 3, FL_OWN_KEPT = 67 };

/* Memory for what the library keeps by itself: see own.c. All zero, it has none. */
struct fl_own_memory {
    struct fl_vspace span; /* len 0: its addresses are not to be had */
    bool asked;            /* whether they are */
    _Atomic size_t used;   /* bytes from the span's start that were ever given out */
    _Atomic size_t mapped; /* bytes of these. Relaxed: a statistic */
    /* What came back, by log2 of its base pages; in the first FL_OWN_WARM places, with its
     * pages. */
    _Atomic uintptr_t kept[FL_OWN_CLASSES][FL_OWN_KEPT];
};

/* Takes the addresses, the first time that it is called: the span that ends at `below`, or, if that
 * is 0, a smaller one anywhere. `name` and `mapped` as in fl_vspace.  Threads: one at a time,
 * before all others here. */
void fl_own_claim(struct fl_own_memory *o, uintptr_t below, const char *name,
                  void (*mapped)(struct fl_range part));
/* Zeroed memory of `len` bytes; NULL. unmap: of the same length; NULL is nothing. Threads: any. */
void *fl_own_map(struct fl_own_memory *o, size_t len);
void fl_own_unmap(struct fl_own_memory *o, void *p, size_t len);
/* Addresses that are never given back, from the first half of the span; 0: there are none. A part
 * of them, whole base pages, becomes zeroed memory; false: it does not. */
uintptr_t fl_own_reserve(struct fl_own_memory *o, size_t len);
bool fl_own_commit(struct fl_own_memory *o, struct fl_range part);

/* What the machine, the memory cgroups (v1 and v2, with ancestors) and the process's limits leave.
 * Bytes; UINT64_MAX: no bound is known. */
struct fl_memory {
    uint64_t headroom; /* what can still be taken: MemAvailable, a cgroup's limit less its use */
    uint64_t
        unused; /* of cgroups' limits, with nothing reclaimed: what could be is told seconds late */
    /* Of the headroom, what may be populated unasked: half of each total stays, the rest is divided
     * by the ranks. */
    uint64_t eager;
    /* Free memory that may be held: an eighth of RLIMIT_AS, RLIMIT_DATA, or, under
     * overcommit_memory=2, of this rank's part of CommitLimit. They count maps. */
    uint64_t keep;
    uint64_t most; /* the least of all totals: RAM, limits of cgroups */
    bool bounded;  /* there is a bound of the process's own, not the machine alone */
    bool grouped;  /* of a memory cgroup: the kernel kills who needs more */
};

enum { FL_CGROUP_PATH = 512, FL_CGROUP_LEVELS = 16 };

/* Room to read files in: a thread that asks for memory may have a stack of a few KiB. And what need
 * not be looked up each time. All zero is a good beginning. Lock: the owner's. */
struct fl_memory_scratch {
    /* Written by the owner, once. */
    unsigned ranks; /* fl_ranks; 0 is 1 */
    /* Bytes the owner holds populated, which count as taken of its part; NULL: unknown. */
    const size_t *held;
    /* Some of that has been handed out for its first touch, and is not in use yet: it counts where
     * there is one rank, too. */
    _Atomic bool promises;
    /* Written by fl_memory_look. */
    char text[4096], path[FL_CGROUP_PATH + 64];
    /* Folder of the process's cgroup, v2's and v1's; "": there is none. */
    char own[2][FL_CGROUP_PATH];
    struct fl_cgroup_level {
        uint64_t limit; /* bytes */
        size_t len;     /* its folder is so much of own[flavour] */
        int flavour;    /* 0: v2, 1: v1 */
    } level[FL_CGROUP_LEVELS];
    size_t nlevel;     /* cgroups with a limit: the process's own, then upwards */
    bool strict;       /* overcommit_memory is 2 */
    unsigned looks;    /* that may still go by what was found; 0: search */
    uint64_t found_ns; /* when it was found */
};

/* Which cgroups there are, their limits and overcommit_memory are searched for at each 16th look,
 * when a second has passed, and when a cgroup that was there is gone. How much is used is read each
 * time. Cost: some 10 us, 20 more for a cgroup with a limit; a search 40 (reads procfs).  Context:
 * early. */
void fl_memory_look(struct fl_memory *m, struct fl_memory_scratch *s);

#endif
