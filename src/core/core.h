/* The option table, and address space for our own descriptors and for the window.
 *
 * State: none of its own; callers own struct fl_options and struct fl_vspace. */
#ifndef FL_CORE_CORE_H
#define FL_CORE_CORE_H

#include "sys/sys.h"

enum fl_disable {
    FL_DISABLE_ALL = 1 << 0,      /* pass every request through */
    FL_DISABLE_THP = 1 << 1,      /* base pages only */
    FL_DISABLE_POPULATE = 1 << 2, /* a touch loop instead of MADV_POPULATE_WRITE */
    FL_DISABLE_WORKER = 1 << 3,   /* no fl- thread: decay only by malloc_trim */
    FL_DISABLE_CACHE = 1 << 4,    /* no thread caches */
};

enum fl_log_level { FL_LOG_NONE, FL_LOG_WARN, FL_LOG_INFO, FL_LOG_DEBUG };

enum fl_option_id {
#define X(kind, name, ...) FL_OPTION_##name,
#include "core/options.def"
#undef X
    FL_OPTION_COUNT
};

enum fl_option_origin { FL_ORIGIN_DEFAULT, FL_ORIGIN_ENVIRONMENT };

/* Values by FL_OPTION_<name>; texts point into the environment as it was at boot. */
struct fl_options {
    uint64_t value[FL_OPTION_COUNT];   /* unit as in the table; WORDS: bits of enum fl_disable */
    const char *text[FL_OPTION_COUNT]; /* TEXT options: NULL when unset or empty */
    enum fl_option_origin origin[FL_OPTION_COUNT];
    unsigned nbad; /* values and names that were refused; each has had its line on stderr */
};

/* Fills `o` from the defaults and from `env` (NULL: defaults only, as for AT_SECURE).
 * A wrong value gets one line on stderr and the default; an unknown FAULTLESS_ name one line with the nearest name.
 * Threads: boot only.  Context: early. */
void fl_options_read(struct fl_options *o, char *const env[]);

/* One line an option on stderr: name, value, origin. */
void fl_options_confirm(const struct fl_options *o);

/* A reserved span of addresses whose front part is readable and writable.
 * V1: committed <= len, both multiples of the base page.  Lock: the owner's. */
struct fl_vspace {
    struct fl_range all;
    _Atomic size_t
        committed; /* bytes from all.base; only grows. Read without the lock to bound look-ups. */
    size_t chunk;  /* bytes committed at a time, while the kernel allows it */
    bool reserved; /* false: nothing is mapped behind the committed part (under RLIMIT_AS) */
    bool huge;     /* advise huge pages on what is committed */
    const char *name;
};

/* Reserves `len` bytes at a multiple of `align`. Where addresses are counted (RLIMIT_AS) nothing is reserved: a span
 * that the kernel does not hand out by itself is used, and mapped as it is committed.
 * Returns 0; -ENOMEM; -EEXIST. Huge advice and name are set by the first commit.  Context: early. */
int fl_vspace_reserve(struct fl_vspace *v, size_t len, size_t align, bool counted,
                      const char *name);

/* Makes the first `upto` bytes usable. 0; -ENOMEM with nothing changed. Cost: at most one mprotect a `chunk`. */
int fl_vspace_commit(struct fl_vspace *v, size_t upto);

/* Memory that this process may still take without pushing the machine or its cgroup into reclaim or OOM: the least of
 * MemAvailable and each cgroup's room (v1 and v2, with ancestors), less a small reserve. Bytes; UINT64_MAX if unknown.
 * Cost: some 30 us (reads procfs). */
uint64_t fl_memory_available(void);

#endif
