/* Threads that the C library does not know, on the real kernel. */
#include "sys/sys.h"
#include "cases.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>

static struct fl_guest guest;
static _Thread_local int own = 7;
static _Atomic int begun, seen_own, seen_tid;
static _Atomic bool may_end;
static char status[4096];

static void begin(void)
{
    atomic_store(&begun, 0);
    atomic_store(&may_end, false);
    own = 1;
}

/* System calls and its own storage: all that a guest may use. */
static void body(void *arg)
{
    errno = EDOM;
    atomic_store(&seen_own, own++);
    atomic_store(&seen_tid, (int)syscall(SYS_gettid));
    (void)fl_sys_linux.read_file("/proc/thread-self/status", status, sizeof status);
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&may_end)) {
        sched_yield();
    }
    *(int *)arg = (int)sched_getscheduler(0);
}

static void await_begun(void)
{
    while (atomic_load(&begun) == 0) {
        sched_yield();
    }
}

static void let_it_end(void)
{
    atomic_store(&may_end, true);
    assert_true(fl_guest_await(&guest, UINT64_C(10000000000)));
    assert_int_equal(syscall(SYS_tgkill, getpid(), atomic_load(&seen_tid), 0), -1);
    assert_int_equal(errno, ESRCH);
}

CASE(it_has_storage_of_its_own_and_the_c_library_does_not_know_it)
{
    int policy = -1;
    errno = 0;
    assert_int_equal(fl_guest_start(&guest, body, &policy), 0);
    await_begun();
    assert_int_equal(errno, 0);
    assert_int_equal(own, 1);
    assert_int_equal(seen_own, 7);
    assert_true(__libc_single_threaded);
    assert_int_equal(fl_guest_start(&guest, body, &policy), -EBUSY);
    assert_false(fl_guest_await(&guest, 1));
    let_it_end();
    assert_int_equal(policy, SCHED_OTHER);
}

CASE(a_second_start_takes_what_the_first_one_left)
{
    int policy;
    assert_true(fl_guest_is_ready(&guest));
    const void *tls = guest.tls;
    uintptr_t stack = guest.stack;
    assert_int_equal(fl_guest_start(&guest, body, &policy), 0);
    await_begun();
    let_it_end();
    assert_ptr_equal(guest.tls, tls);
    assert_int_equal(guest.stack, stack);
}

CASE(no_signal_reaches_it)
{
    int policy;
    assert_int_equal(fl_guest_start(&guest, body, &policy), 0);
    await_begun();
    const char *blocked = strstr(status, "SigBlk:");
    assert_non_null(blocked);
    /* all but SIGKILL and SIGSTOP */
    assert_int_equal(strtoull(blocked + strlen("SigBlk:"), NULL, 16), UINT64_MAX & ~0x40100ull);
    let_it_end();
}

/* The process's first thread is the caller. */
CASE(it_is_scheduled_as_the_process_s_first_thread)
{
    const struct sched_param none = {0};
    int policy = -1;
    assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    assert_int_equal(fl_guest_start(&guest, body, &policy), 0);
    await_begun();
    let_it_end();
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
    assert_int_equal(policy, SCHED_BATCH);
}

int main(void)
{
    *(void **)(void *)&fl_libc.allocate_tls = dlsym(RTLD_DEFAULT, "_dl_allocate_tls");
    fl_sys_boot();
    fl_home_settle();
    return RUN_CASES(.setup = begin);
}
