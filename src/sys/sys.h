/* The one door to the kernel: every system call, procfs read and the clock, behind a table that
 * tests replace.
 *
 * Contract for all slots of fl_sys: 0 or -errno out, results by pointer; errno itself may change
 * (alloc/ saves it). They may be called early (before libc is initialised), from any thread, with
 * our locks held. State: fl_sys (constant after boot; tests write it single-threaded), fl_page
 * (constant after fl_sys_boot). */
#ifndef FL_SYS_SYS_H
#define FL_SYS_SYS_H

#include "base/base.h"
#include "sys/call.h"
#include "sys/guest.h"
#include "sys/lock.h"
#include "sys/nodes.h"
#include "sys/object.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/types.h>

enum fl_sys_advice {
    FL_ADVICE_HUGE, /* MADV_HUGEPAGE, Linux 2.6.38; -EINVAL without CONFIG_TRANSPARENT_HUGEPAGE */
    FL_ADVICE_NO_HUGE, /* MADV_NOHUGEPAGE, Linux 2.6.38 */
    FL_ADVICE_NO_FORK, /* MADV_DONTFORK: a child has no such map. Linux 2.6.16 */
    FL_ADVICE_FORK,    /* MADV_DOFORK: takes that back */
    FL_ADVICE_WIPE,    /* MADV_WIPEONFORK: a child reads zeros there. Linux 4.14 */
    FL_ADVICE_NO_WIPE, /* MADV_KEEPONFORK: takes that back */
    FL_ADVICE_NO_DUMP, /* MADV_DONTDUMP: not in core dumps. Linux 3.4 */
    FL_ADVICE_DUMP,    /* MADV_DODUMP: takes that back */
    /* MADV_COLLAPSE, Linux 6.1: base pages become huge ones, with a copy; blocks for it */
    FL_ADVICE_COLLAPSE,
    /* MADV_GUARD_INSTALL: a touch of the range is a SIGSEGV, its pages go, its map stays one. Linux
     * 6.13; -EINVAL without it, and where the range is locked in memory. */
    FL_ADVICE_GUARD,
    FL_ADVICE_NO_GUARD, /* MADV_GUARD_REMOVE: takes that back; the pages are new ones */
    FL_ADVICE_DROP,     /* MADV_DONTNEED: the pages go; those that a touch brings read as zero */
    /* MADV_COLD of a part of a huge page: it becomes base pages at once, unless a child of fork has
     * it too. Linux 5.4; before it, and where the range is locked in memory, -EINVAL. */
    FL_ADVICE_SPLIT,
};

/* Helpers: as many as pay. */
enum { FL_HELPERS_ALL = 255 };

enum { FL_TOUCHED_MOST = 4 }; /* parts that one look tells of: stacks may be short */

/* Base pages: how many, the lowest and the highest. */
struct fl_filled {
    unsigned n;
    uintptr_t first, last;
};

struct fl_sys {
    /* Address space without memory, anywhere: PROT_NONE, MAP_NORESERVE. -ENOMEM. */
    int (*reserve)(size_t len, uintptr_t *out_base);
    /* Readable and writable memory at exactly `r`, where nothing was mapped (MAP_FIXED_NOREPLACE,
     * Linux 4.17). -EEXIST when something is; -ENOMEM when a limit or the overcommit rule refuses,
     * or there are no such addresses. */
    int (*map_at)(struct fl_range r);
    /* The same in place of what is mapped there, of ours: whole hugetlb pages of `page` bytes, set
     * apart for it but not in memory yet. Refused, nothing is mapped there: -ENOMEM, the pool
     * has too few; -EINVAL, there are none of that size. */
    int (*map_hugetlb)(struct fl_range r, size_t page);
    int (*unmap)(struct fl_range r);
    /* Reserved addresses become readable and writable, and back. Charged and uncharged where the
     * kernel charges. */
    int (*commit)(struct fl_range r);
    int (*decommit)(struct fl_range r);
    /* A touch of the range is a SIGSEGV; `commit` takes that back, and the pages are as they were.
     * mprotect(2). -ENOMEM: too many maps. */
    int (*protect)(struct fl_range r);
    int (*advise)(struct fl_range r, enum fl_sys_advice advice);
    /* Brings every page into memory, writable. MADV_POPULATE_WRITE, Linux 5.14: -EINVAL where the
     * kernel lacks it; -ENOMEM, -EFAULT or -EHWPOISON with the range partly filled. Blocks for the
     * kernel's clearing. */
    int (*populate)(struct fl_range r);
    /* The same by the caller and up to `helpers` others side by side: see fl_crew_populate. Not
     * early, no lock held. */
    int (*populate_shared)(struct fl_range r, unsigned helpers);
    /* Moves pages and map of `from` to where something of ours is mapped, which goes. mremap(2). In
     * a confined process only for a block that glibc's realloc would move so: see
     * fl_move_by_map. */
    int (*remap)(struct fl_range from, uintptr_t to);
    /* Moves populated huge pages without a copy, Linux 6.8. begin: `to` is mapped, empty and stays
     * the caller's alone until end; -ENOSYS or -EPERM where there is no such thing. pages: all of
     * `from`, or part of it with -EAGAIN (again), -EBUSY (pinned or shared after fork), -EEXIST
     * (`to` is not empty), -EINVAL (more than one map). */
    int (*move_begin)(struct fl_range to, int *out_fd);
    int (*move_pages)(int fd, struct fl_range from, uintptr_t to, size_t *out_moved);
    void (*move_end)(int fd, struct fl_range to);
    /* First touches of armed ranges (mapped, ours) are told to the reader of `fd`, and wait for a
     * page: move_pages to there wakes. open: -EPERM where faults of system calls could not be
     * served, -ENOSYS before Linux 6.8. arm with `on` false wakes all who wait there. read: -EAGAIN
     * when there is none. */
    int (*touch_open)(int *out_fd);
    int (*touch_arm)(int fd, struct fl_range r, bool on);
    int (*touch_read)(int fd, uintptr_t *out_addr, int *out_tid);
    /* The kernel may take the pages when memory is short; what is written afterwards is safe.
     * MADV_FREE, Linux 4.5. */
    int (*lazy_free)(struct fl_range r);
    /* Bytes of `r` that are resident. mincore(2); cost about 0.2 ms a GiB of huge pages. */
    int (*resident)(struct fl_range r, size_t *out_bytes);
    /* The next whole huge pages in `r`, itself whole huge pages, that are mapped by base pages,
     * wholly or in part. -ENOENT: there are none; -ENOSYS before Linux 6.7 (PAGEMAP_SCAN). */
    int (*find_split)(struct fl_range r, struct fl_range *out);
    /* Bytes of `r` that are in memory, and those of them that no other process maps.
     * /proc/thread-self/pagemap, Linux 4.2. */
    int (*survey)(struct fl_range r, size_t *out_present, size_t *out_own);
    /* The parts of `r` that hold something, in memory or swapped out, lowest first, in base pages:
     * how many, `most` (FL_TOUCHED_MOST) at most: then there may be more. Negative: unknown.
     * PAGEMAP_SCAN, Linux 6.7, else pagemap(5). Cost: 3 us, and 30 a GiB of huge pages. */
    int (*touched)(struct fl_range r, struct fl_range out[], unsigned most);
    /* The parts of `r` that huge pages are mapped to, as `touched` tells of what holds something.
     * PAGEMAP_SCAN; -ENOTTY before Linux 6.7. */
    int (*huge)(struct fl_range r, struct fl_range out[], unsigned most);
    /* Which base pages of `r`, all of it in memory, hold anything but zeros, of those at multiples
     * of `step` from its start. Ends when `most` were found. /proc/thread-self/mem; -EACCES in an
     * undumpable process, -EIO where nothing is mapped.  Cost: 0.5 ms for 2 MiB of zeros, 1 us
     * for a page. */
    int (*filled)(struct fl_range r, size_t step, unsigned most, struct fl_filled *out);
    /* Bytes of `r` that are in memory, as the kernel counts them to a process: its page of zeros is
     * not counted. As `touched`, but by /proc/thread-self/pagemap (before Linux 6.7) that page
     * counts, and before 6.16 the huge one does. -errno: unknown. */
    int (*present)(struct fl_range r, size_t *out_bytes);
    /* Name shown in /proc/PID/maps. PR_SET_VMA_ANON_NAME, Linux 5.17; -EINVAL without it. */
    int (*name)(struct fl_range r, const char *name);
    uint64_t (*now_ns)(void); /* CLOCK_MONOTONIC */
    /* The processor's time that the calling thread has had: CLOCK_THREAD_CPUTIME_ID. 0 in a
     * confined process. Cost: a system call. */
    uint64_t (*own_ns)(void);
    /* Whole small file into buf, NUL-terminated, cut at size - 1. */
    int (*read_file)(const char *path, char *buf, size_t size);
    /* Soft limit; UINT64_MAX when there is none. `resource`: RLIMIT_AS, RLIMIT_DATA. */
    uint64_t (*limit)(int resource);
    /* Bytes of RAM; 0 when unknown. `swap`: NULL, or gets those of swap. sysinfo(2) */
    uint64_t (*memory_total)(uint64_t *swap);
    uint64_t (*entropy)(void); /* the same value each time in one process: AT_RANDOM */
    /* Sleeps while *word == expected; timeout_ns 0: for ever. -EAGAIN, -EINTR, -ETIMEDOUT are
     * answers. */
    int (*wait)(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
    int (*wake)(_Atomic uint32_t *word, int count);
    int (*write)(int fd, const char *text, size_t len);
    int (*append_file)(const char *path, const char *text, size_t len);
    /* The file is this, or what it was before: written beside it, flushed, and renamed; with the
     * mode that it had. A link is replaced, not what it leads to; -EINVAL: it is there and no
     * regular file. */
    int (*replace_file)(const char *path, const void *data, size_t len);
};

/* libc's functions of these names, past our own (preload/), which would take the library's calls
 * for the program's. Raw system calls until boot, which puts the next definitions here: what stands
 * behind us, or writes over libc's code, to be told of maps (UCX, Open MPI) is told of ours too. */
struct fl_libc {
    long (*syscall)(long nr, ...);
    void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
    int (*munmap)(void *addr, size_t len);
    int (*mprotect)(void *addr, size_t len, int prot);
    int (*pkey_mprotect)(void *addr, size_t len, int prot, int pkey);
    int (*madvise)(void *addr, size_t len, int advice);
    void *(*mremap)(void *addr, size_t old_len, size_t new_len, int flags, ...);
    int (*mlock)(const void *addr, size_t len);
    int (*mlock2)(const void *addr, size_t len, unsigned flags);
    int (*mlockall)(int flags);
    int (*munlockall)(void);
    /* libc's own, past all others, for the program's blocks. Else: preload/bytes.c. */
    void *(*memset)(void *to, int byte, size_t n);
    void *(*memcpy)(void *to, const void *from, size_t n);
    /* The dynamic linker's: a thread's static storage, initialised. NULL: it has none of that name.
     * */
    void *(*allocate_tls)(void *block);
};

extern struct fl_libc fl_libc;

/* Of the calling thread: maps of the library's own that it changes at this moment. What stands
 * before libc's functions may make the call by number, through our syscall(3): it is no call of the
 * program's. */
extern FL_HIDDEN _Thread_local unsigned fl_sys_own;

extern struct fl_sys fl_sys;             /* the table in use */
extern const struct fl_sys fl_sys_linux; /* the real one */

/* For the library's own thread, which waits for descriptors in a table of its own: none of the
 * program's is held open there, and the program cannot close ours. Beside fl_sys; the same
 * contract, and -EPERM where fl_sys_is_confined. See events.c. */
struct fl_events {
    /* An empty table for the calling thread, in place of the one it shared. close_range(2) with
     * CLOSE_RANGE_UNSHARE, Linux 5.9; -ENOSYS before, -EPERM in sandboxes. Afterwards descriptor 2
     * is not the program's: fl_say would write to none, or into one of ours. */
    int (*own_table)(void);
    /* A descriptor that is readable when the calling thread was woken. It has been tried when it is
     * given out. */
    int (*wake_open)(int *out_fd);
    /* Wakes thread `tid` of process `pid`, the caller's; each wake is one `take`. -EAGAIN:
     * RLIMIT_SIGPENDING is used up. Signals: safe. */
    int (*wake_send)(int pid, int tid);
    /* Without a descriptor: takes one wake. -EAGAIN when timeout_ns have passed (UINT64_MAX: for
     * ever); -EINTR. rt_sigtimedwait(2). */
    int (*await_wake)(uint64_t timeout_ns);
    int (*open)(const char *path, bool writable, int *out_fd);
    int (*counter)(int *out_fd);                       /* eventfd(2) */
    int (*tell)(int fd, const char *text, size_t len); /* one write(2) */
    /* Reads what is there, from its start, and drops it. -EAGAIN: nothing. */
    int (*take)(int fd);
    int (*close)(int fd);
    /* How many are ready; 0 when timeout_ns have passed (UINT64_MAX: for ever); -EINTR; -EINVAL
     * when RLIMIT_NOFILE is below `n`. ppoll(2). What else is negative will not get better
     * either. */
    int (*poll)(struct pollfd *p, unsigned n, uint64_t timeout_ns);
};

extern struct fl_events fl_events;
extern const struct fl_events fl_events_linux;

struct fl_page {
    size_t base;    /* bytes of a base page (AT_PAGESZ) */
    size_t huge;    /* bytes of a huge page as the region uses them: at most 2 MiB, see page.c */
    unsigned shift; /* log2(base) */
    bool thp;       /* transparent huge pages are to be had for advised ranges */
    bool always;    /* the same for all others */
};
extern FL_HIDDEN struct fl_page fl_page;

/* At FL_CHECK_LEVEL 2 and above fl_sys checks each such call: see fl_lock_check_call. Context:
 * boot, before any call. */
void fl_sys_check_calls(void);

/* At load: is there a filter? The size of a base page. */
void fl_sys_load(void);
/* From now on no memory of this process, or of those that it starts, is in huge pages unless it is
 * advised to be (Linux 6.18). 0, or -errno: nothing has changed.  Context: before fl_sys_boot. */
int fl_sys_keep_huge(void);
/* Reads page sizes and the THP mode. Idempotent. */
void fl_sys_boot(void);

/* What the kernel told the program at its start of that kind, AT_... of getauxval(3); 0: nothing.
 * Context: early. */
unsigned long fl_sys_auxval(unsigned long type);

/* The process is under a seccomp filter of its own: nothing is called any more that glibc's malloc
 * would not call, for the filter may kill. See confined.c. One load. */
bool fl_sys_is_confined(void);
void fl_sys_confine(bool yes);

/* Copies what of `len` bytes of the process's own at `from` can be read, up to the first page that
 * cannot; the page of `from` is there. Returns how many. process_vm_readv(2); refused, no more than
 * that page.  Signals: safe. */
size_t fl_sys_peek(void *to, uintptr_t from, size_t len);

/* The number of the CPU on which the calling thread runs, as the kernel writes it for the thread:
 * no call. Where it is not told, any number; in a thread that is not registered -1 or -2. rseq(2),
 * Linux 4.18; glibc 2.35 registers it. */
extern FL_HIDDEN ptrdiff_t fl_cpu_offset; /* from the thread's pointer; 0: not told */
/* Finds it by glibc's __rseq_offset and __rseq_size, which it has from 2.35 on; else NULL. Context:
 * boot, one thread. */
bool fl_cpu_is_told(const ptrdiff_t *offset, const unsigned *size);
static inline unsigned fl_cpu_here(void)
{
    const char *thread = (const char *)__builtin_thread_pointer();

    return __atomic_load_n((const unsigned *)(const void *)(thread + fl_cpu_offset),
                           __ATOMIC_RELAXED);
}

/* In a loop that waits for another CPU. */
static inline void fl_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whose the calling thread is, as it says itself. A guest waits for a fork's locks as long as the
 * fork lasts. One apart has a table of descriptors of its own: no child of fork gets what it opens,
 * and it takes no lock for that. */
enum fl_thread { FL_THREAD_PROGRAM, FL_THREAD_GUEST, FL_THREAD_APART };
extern FL_HIDDEN _Thread_local enum fl_thread fl_thread;

/* The process that booted, or a child that fork's handlers made whole. False in any other child:
 * there the region belongs to threads that are gone, and requests go to the next allocator. One
 * load. */
extern FL_HIDDEN _Atomic uint32_t *fl_home_word;
static inline bool fl_home_is_here(void)
{
    return atomic_load_explicit(fl_home_word, memory_order_relaxed) != 0;
}
/* At load; from then on fl_home_is_borrowed tells. */
void fl_home_note(void);
/* At boot; in a child whose tables are whole; in one whose tables are not. */
void fl_home_settle(void);
void fl_home_settle_in_child(void);
void fl_home_leave(void);
/* The caller runs in another process than the one that settled: a child of vfork(2), say. Cost:
 * getpid(2). */
bool fl_home_is_borrowed(void);
int fl_home_pid(void);

/* The user's limit of processes, or a control group's, is one that a program fills, or nearly
 * reached: no thread of the library's is to be started. Threads: any; no lock of ours held.
 * Signals: safe.  Cost: a call; until it is known that no group has a limit, some small files, 30
 * us and more. */
bool fl_places_are_few(void);

/* Who helps to populate. Each kind falls back on those before it. */
enum fl_crew_kind {
    FL_CREW_ALONE,
    FL_CREW_THREADS, /* short-lived threads, named fl-fill, all signals blocked */
    FL_CREW_URING,   /* io_uring's workers; only on threads of the library's own */
};

/* Brings every page of `r` into memory, writable, by the caller and up to `helpers` others at the
 * same time.
 *   r         in whole base pages. Below 128 MiB the caller does it alone.
 *   helpers   at most; never more than CPUs of the range's node are idle that the thread may use,
 *             nor than the range has 8 MiB.
 *   allowed   the best kind that may be used. A program that has confined itself since boot gets
 *             none.
 *   out_used  who helped; may be NULL.
 * Returns 0, or the first refusal as fl_sys.populate has it, with the range partly filled; -EINVAL
 * at once where the kernel lacks MADV_POPULATE_WRITE. On return no helper works on the range any
 * more. FL_CREW_URING: the kernel signals the end of a ring to the thread that opened it, some 10
 * ms after it is closed; the thread's next epoll_wait(2) fails with EINTR, though no handler ran.
 * The ring is a descriptor (close-on-exec) while this runs. So only on a thread of our own, with a
 * table of descriptors of its own, that expects it. Threads: any; no lock of ours held: to start a
 * thread may allocate. Signals: not safe. A handler may fork meanwhile. Fork: child may call; a
 * child forked meanwhile gets neither helpers nor, on FL_CREW_URING's terms, descriptors. Context:
 * not early. errno may change. Cost: 40 to 150 us for the helpers; the range in half the time on
 * two CPUs. Source: madvise(2), io_uring(7). */
int fl_crew_populate(struct fl_range r, unsigned helpers, enum fl_crew_kind allowed,
                     enum fl_crew_kind *out_used);

/* No helper that is a thread is left, for the kernel too; they end by themselves.  Threads: any. */
void fl_crew_await(void);
/* In the child after fork: they are not here. */
void fl_crew_fork_child(void);

/* The best kind that fl_sys.populate_shared may use from now on.  Context: boot only. */
void fl_crew_limit(enum fl_crew_kind best);

/* A file, or any descriptor that pread(2) reads, into memory, several pieces at a time.
 *   to     any memory; a ring registers it first, where the limits allow, so that its pages are
 *          looked up once.
 *   ring   io_uring(7) may be used. Not by a program that has confined itself.
 *   done   called for each part that is there, in any order, by the calling thread; NULL: not
 *          wanted.
 * A descriptor that is open with O_DIRECT is read past the page cache, but for what its alignment
 * leaves over at the edges. Returns 0; -ENODATA: it ends before, and what there is is there; -errno
 * of read(2). On return nothing reads any more. After a ring the calling thread's next
 * epoll_wait(2) may fail with EINTR, though no handler ran: see fl_crew_populate. Threads: any; no
 * lock of ours held.  Signals: not safe. */
struct fl_read {
    int fd;
    uint64_t offset;
    struct fl_range to;
    bool ring;
    void (*done)(void *arg, struct fl_range part);
    void *arg;
};
int fl_read_file(const struct fl_read *r);

/* One line on stderr with the prefix "faultless: " and a newline. Context: any, signal-safe. */
void fl_say(const char *text);

/* For what is said at the very end, when many programs have closed standard error (all of coreutils
 * do): keeps a copy of it (close-on-exec, from 100 on); writes `text` to standard error, else to
 * the copy, where that is still the same file.  Context: boot; exit. */
void fl_say_keep(void);
void fl_say_last(const char *text, size_t len);

/* fl_say, then abort. For bugs, ours or the program's, after which going on would corrupt
 * memory. */
_Noreturn void fl_fatal(const char *text);

#endif
