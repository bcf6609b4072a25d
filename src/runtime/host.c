/* What the program changes about itself: the library's threads are gone before it does, and come
 * back with what it has then. docs/internals/host.md has the table of calls; preload/self.c sees
 * them. */
#include "runtime/runtime.h"

#include <errno.h>
#include <pthread.h>

static FL_AT_START pthread_t first_thread; /* constant after load */

__attribute__((constructor(101))) static void note_first_thread(void)
{
    first_thread = pthread_self();
}

bool fl_host_is_first(pthread_t t)
{
    return pthread_equal(t, first_thread) != 0;
}

/* fl_route.worker is NULL before boot, and where nothing runs. */
static void send_away(void)
{
    fl_guests_bar();
    if (fl_route.worker != NULL) {
        fl_worker_retire(fl_route.worker);
    }
    fl_crew_await();
}

/* The process's threads are not this one's to send away: it is a child of vfork(2), or has no
 * handlers run. */
static bool is_elsewhere(void)
{
    return fl_runtime.active && fl_home_is_borrowed();
}

bool fl_host_begin_change(void)
{
    int saved = errno;

    if (fl_sys_is_confined() || is_elsewhere()) {
        return false;
    }
    send_away();
    errno = saved;
    return true;
}

void fl_host_end_change(bool begun)
{
    if (begun) {
        fl_guests_unbar();
    }
}

/* What was free in the window is free in the next allocator's heap, as under glibc, which has it
 * there: no call is allowed any more that would get memory. A small block behind it stays, so that
 * its end is not given back. */
static void leave_free_to_next(size_t bytes)
{
    enum { PIECE = 120 * FL_KIB, MOST = 32 };
    void *piece[MOST];
    unsigned n = 0;

    do {
        piece[n] = fl_route.next.malloc(PIECE);
    } while (piece[n++] != NULL && n < MOST && n * (size_t)PIECE < bytes);
    (void)fl_route.next.malloc(1);
    while (n > 0) {
        fl_route.next.free(piece[--n]);
    }
}

static size_t free_bytes(void)
{
    struct fl_stats_values v;

    fl_read_stats(&v);
    return v.cached_bytes + v.free_held_bytes;
}

bool fl_host_begin_filter(bool strict)
{
    int saved = errno;

    if (fl_sys_is_confined() || is_elsewhere()) {
        return false;
    }
    send_away();
    if (fl_runtime.active && !fl_region_busy()) {
        if (strict) {
            leave_free_to_next(free_bytes());
        }
        fl_region_release(&fl_runtime.region);
    }
    fl_sys_confine(true);
    atomic_store(&fl_runtime.has_own_filter, true);
    if (fl_runtime.options.value[FL_OPTION_log] >= FL_LOG_INFO) {
        fl_say("a seccomp filter comes: from here on no call that malloc would not make");
    }
    errno = saved;
    return true;
}

void fl_host_end_filter(bool begun, bool installed, bool strict)
{
    if (begun && installed && strict) {
        fl_route.threshold = SIZE_MAX;
    }
    if (begun) {
        fl_sys_confine(installed);
        atomic_store(&fl_runtime.has_own_filter, installed);
        fl_guests_unbar();
    }
}

bool fl_host_make_room(size_t *out_given)
{
    int saved = errno;
    bool may = fl_runtime.active && !fl_sys_is_confined() && fl_home_is_here() && !is_elsewhere() &&
               !fl_region_busy();

    *out_given = may ? fl_region_clear_out(&fl_runtime.region) : 0;
    errno = saved;
    return may;
}

void fl_host_note_limit(void)
{
    int saved = errno;

    if (fl_runtime.active && !is_elsewhere() && !fl_region_busy()) {
        atomic_store(&fl_route.spread, 0);
        (void)fl_trim(0);
        fl_region_note_limit(&fl_runtime.region);
        if (fl_route.tune_next != NULL) {
            fl_route.tune_next(fl_runtime.region.pressure.fits);
        }
        if (fl_route.next.trim != NULL) { /* what it kept so far counts, too */
            (void)fl_route.next.trim(0);
        }
    }
    errno = saved;
}
