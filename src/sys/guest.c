/* Threads of the library's own that the C library does not know.
 *
 * A thread of pthread_create(3) changes the program: its exit handlers run on whichever thread ends
 * last, fork takes locks that a single-threaded program's does not, atomic operations take the
 * place of plain ones (__libc_single_threaded). A guest does none of that: it is made by clone(2),
 * with a thread-local storage block of the dynamic linker's, and is not counted. It ends when it
 * returns, or with the process. The kernel knows it like any other thread: what it refuses a
 * process of several threads (unshare, setns), and what it changes for one thread alone
 * (credentials, filters), wants the guest to be gone first: fl_guest_await.
 *
 * A guest must not call malloc, stdio, or anything of the C library that keeps state: system calls
 * alone. A second start allocates nothing, so signal handlers may cause it.
 * Sources: clone(2), set_tid_address(2), "ELF Handling for Thread-Local Storage" (Drepper); glibc
 * 2.36 (_dl_allocate_tls, of version GLIBC_PRIVATE; without it there are no guests). */
#include "sys/internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 124 * FL_KIB, STARTING = 1 };

static const uint64_t look_again_ns = 10000000;

static int get_tls(struct fl_guest *g)
{
    if (g->tls != NULL) {
        return 0;
    }
    if (fl_libc.allocate_tls == NULL) {
        return -ENOSYS;
    }
    g->tls = fl_libc.allocate_tls(NULL);
    if (g->tls == NULL) {
        return -ENOMEM;
    }
#if defined(__x86_64__)
    /* The thread's control block: its own address twice, and the guards of stack and pointers,
     * which are the process's. */
    enum { TCB, SELF = 2, STACK_GUARD = 5, POINTER_GUARD = 6 };
    const uintptr_t *mine = __builtin_thread_pointer();
    uintptr_t *tcb = g->tls;
    tcb[TCB] = tcb[SELF] = (uintptr_t)tcb;
    tcb[STACK_GUARD] = mine[STACK_GUARD];
    tcb[POINTER_GUARD] = mine[POINTER_GUARD];
#endif
    return 0;
}

/* Bytes, with a guard page, whatever its size, at the low end. */
static size_t stack_map(void)
{
    return fl_align_up(STACK_BYTES, fl_page.base) + fl_page.base;
}

static int get_stack(struct fl_guest *g)
{
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK };

    if (g->stack != 0) {
        return 0;
    }
    long at = fl_call(SYS_mmap, 0, stack_map(), PROT_READ | PROT_WRITE, FLAGS, -1, 0);
    if (at < 0) {
        return (int)at;
    }
    g->stack = (uintptr_t)at;
    return 0;
}

static bool is_ordinary(int policy)
{
    return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

/* As the process's first thread is scheduled, not as the one that happened to start us; and never
 * ahead of others. */
static void take_the_process_s_schedule(void)
{
    const struct sched_param none = {.sched_priority = 0};
    int process = fl_home_pid(), now = (int)fl_call(SYS_sched_getscheduler, 0);
    int wanted = (int)fl_call(SYS_sched_getscheduler, process);
    struct fl_cpu_ids cpus;

    wanted = is_ordinary(wanted) ? wanted : SCHED_OTHER;
    if (now != wanted) {
        (void)fl_call(SYS_sched_setscheduler, 0, wanted, &none);
    }
    long nice = fl_call(SYS_getpriority, PRIO_PROCESS, process); /* 20 is 0, 1 is 19 */
    if (nice > 0 && nice != fl_call(SYS_getpriority, PRIO_PROCESS, 0)) {
        (void)fl_call(SYS_setpriority, PRIO_PROCESS, 0, 20 - nice);
    }
    long n = fl_call(SYS_sched_getaffinity, process, sizeof cpus, &cpus);
    if (n > 0) {
        (void)fl_call(SYS_sched_setaffinity, 0, n, &cpus);
    }
}

_Thread_local enum fl_thread fl_thread;

ptrdiff_t fl_cpu_offset;

bool fl_cpu_is_told(const ptrdiff_t *offset, const unsigned *size)
{
    static const ptrdiff_t cpu_id = 4; /* its place in the kernel's struct rseq */
    bool told = offset != NULL && size != NULL && *size != 0;

    fl_cpu_offset = told ? *offset + cpu_id : 0;
    return told;
}

static int run(void *arg)
{
    struct fl_guest *g = arg;

    /* By the thread itself: who starts it waits for no more than there must be. */
    (void)fl_call(SYS_mprotect, g->stack, fl_page.base, PROT_NONE);
    take_the_process_s_schedule();
    fl_thread = FL_THREAD_GUEST;
    g->body(g->arg);
    return 0;
}

static _Atomic unsigned barred;

void fl_guests_bar(void)
{
    atomic_fetch_add(&barred, 1);
}

void fl_guests_unbar(void)
{
    unsigned n = atomic_load(&barred);

    /* 0: this is the child of a handler that forked meanwhile */
    while (n != 0 && !atomic_compare_exchange_weak(&barred, &n, n - 1)) {
    }
}

uint64_t fl_signals_block(void)
{
    uint64_t all = UINT64_MAX, old = 0;

    (void)fl_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof all);
    return old;
}

void fl_signals_restore(uint64_t blocked)
{
    (void)fl_call(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof blocked);
}

/* All signals are blocked on it, those that the C library keeps for itself too. */
static int start(struct fl_guest *g)
{
    enum {
        FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID
    };
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a stack begins at its end */
    void *top = (void *)(g->stack + stack_map());
    fl_assert(fl_guest_is_ready(g));
    uint64_t old = fl_signals_block();
    int tid = __clone(run, top, FLAGS, g, &g->last, g->tls, &g->tid);
    int rc = tid > 0 ? 0 : -errno;
    fl_signals_restore(old);
    return rc;
}

bool fl_guest_is_ready(const struct fl_guest *g)
{
    return g->stack != 0 && g->tls != NULL;
}

int fl_guest_start(struct fl_guest *g, void (*body)(void *), void *arg)
{
    uint32_t none = 0;

    if (!atomic_compare_exchange_strong(&g->tid, &none, STARTING)) {
        return -EBUSY;
    }
    /* After the number is taken: what bars either sees it, and waits for its end, or is seen
     * here. */
    int rc = atomic_load(&barred) != 0 ? -EAGAIN : get_tls(g);
    rc = rc == 0 ? get_stack(g) : rc;
    g->body = body;
    g->arg = arg;
    rc = rc == 0 ? start(g) : rc;
    if (rc != 0) {
        atomic_store(&g->tid, 0);
    }
    return rc;
}

/* The kernel clears the number, and wakes who waits for that, a moment before it forgets the
 * thread. */
bool fl_guest_await(struct fl_guest *g, uint64_t timeout_ns)
{
    uint64_t until = fl_sys_linux.now_ns() + timeout_ns;
    uint32_t tid;

    while ((tid = atomic_load(&g->tid)) != 0) {
        if (fl_sys_linux.now_ns() >= until) {
            return false;
        }
        const struct timespec soon = {0, (long)look_again_ns};
        (void)fl_call(SYS_futex, &g->tid, FUTEX_WAIT, tid, &soon);
    }
    int last = atomic_load(&g->last);
    while (last != 0 && fl_call(SYS_tgkill, fl_call_pid(), last, 0) == 0) {
        if (fl_sys_linux.now_ns() >= until) {
            return false;
        }
        (void)fl_call(SYS_sched_yield);
    }
    (void)atomic_compare_exchange_strong(&g->last, &last, 0);
    return true;
}

void fl_guest_fork_child(struct fl_guest *g)
{
    atomic_store(&g->tid, 0);
    atomic_store(&g->last, 0);
    g->tls = NULL;            /* as it was amid the thread's work */
    atomic_store(&barred, 0); /* the thread that barred them may not be here */
}
