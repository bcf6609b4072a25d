#include "unit/guest_fixture.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

struct guests guests;

/* cppcheck and clang-tidy know the wrapped name by this declaration alone. */
int __wrap_fl_guest_start(struct fl_guest *g, void (*body)(void *), void *arg);

static void *run(void *arg)
{
    struct fl_guest *g = arg;

    fl_thread = FL_THREAD_GUEST;
    g->body(g->arg);
    atomic_fetch_add(&guests.ended, 1);
    atomic_store(&g->tid, 0);
    (void)syscall(SYS_futex, &g->tid, FUTEX_WAKE, 1, NULL, NULL, 0);
    return NULL;
}

int __wrap_fl_guest_start(struct fl_guest *g, void (*body)(void *), void *arg)
{
    uint32_t none = 0;
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;

    if (!atomic_compare_exchange_strong(&g->tid, &none, 1)) {
        return -EBUSY;
    }
    if (atomic_load(&guests.refusals) > 0) {
        atomic_fetch_sub(&guests.refusals, 1);
        atomic_store(&g->tid, 0);
        return atomic_load(&guests.refuse_as);
    }
    g->body = body;
    g->arg = arg;
    atomic_fetch_add(&guests.begun, 1);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &attr, run, g);
    (void)pthread_attr_destroy(&attr);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}
