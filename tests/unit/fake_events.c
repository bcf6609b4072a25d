#include "unit/fake_events.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { FIRST_FD = 1000 };

struct fake_events fake_events;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned pending_wakes;

static void enter(void)
{
    pthread_mutex_lock(&lock);
}

static void leave(void)
{
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* A new descriptor; the lock is held. Numbers are not used again: a closed one that is used is
 * noticed. */
static int new_fd(const char *path)
{
    for (int i = 0; i < FAKE_EVENT_FDS; i++) {
        if (fake_events.fd[i].path[0] == '\0') {
            strncpy(fake_events.fd[i].path, path, sizeof fake_events.fd[i].path - 1);
            fake_events.fd[i].open = true;
            return FIRST_FD + i;
        }
    }
    fl_fatal("the test opens more descriptors than it should");
}

static int slot(int fd)
{
    if (fd < FIRST_FD || fd >= FIRST_FD + FAKE_EVENT_FDS || !fake_events.fd[fd - FIRST_FD].open) {
        fl_fatal("a descriptor is used that is not open");
    }
    return fd - FIRST_FD;
}

static bool is(int i, const char *path)
{
    return strcmp(fake_events.fd[i].path, path) == 0;
}

static bool is_of_stalls(int i)
{
    const char *path = fake_events.fd[i].path, *name = strrchr(path, '/');

    return is(i, "/proc/pressure/memory") ||
           (name != NULL && strcmp(name, "/memory.pressure") == 0);
}

static int fake_own_table(void)
{
    fake_events.own_tables++;
    return fake_events.own_table_rc;
}

static int fake_wake_open(int *out_fd)
{
    if (fake_events.wake_open_rc == 0) {
        enter();
        *out_fd = new_fd("wake");
        leave();
    }
    return fake_events.wake_open_rc;
}

static int fake_wake_send(int pid, int tid)
{
    (void)pid;
    (void)tid;
    int rc = atomic_load(&fake_events.wake_send_rc);
    if (rc == 0) {
        atomic_fetch_add(&fake_events.wakes, 1);
        fake_events_stray_wake();
    }
    return rc;
}

static int fake_poll(struct pollfd *p, unsigned n, uint64_t timeout_ns);

/* As poll with the wake alone. */
static int fake_await_wake(uint64_t timeout_ns)
{
    int rc;

    if (timeout_ns != 0 && atomic_load(&fake_events.poll_rc) == 0) {
        atomic_fetch_sub(&fake_events.polls, 1);
        (void)fake_poll(NULL, 0, timeout_ns);
    }
    enter();
    rc = pending_wakes != 0 ? 0 : -EAGAIN;
    pending_wakes -= pending_wakes != 0;
    leave();
    return rc;
}

static int fake_open(const char *path, bool writable, int *out_fd)
{
    int rc = -ENOENT;

    enter();
    for (size_t i = 0; i < fake_events.nfile; i++) {
        if (strcmp(fake_events.file[i].path, path) == 0) {
            rc = writable && fake_events.file[i].read_only ? -EACCES : 0;
        }
    }
    if (rc == 0) {
        *out_fd = new_fd(path);
    }
    leave();
    return rc;
}

static int fake_counter(int *out_fd)
{
    enter();
    *out_fd = new_fd("counter");
    leave();
    return 0;
}

static int fake_tell(int fd, const char *text, size_t len)
{
    enter();
    bool is_stall = is_of_stalls(slot(fd));
    bool refused = is_stall && (fake_events.no_trigger ||
                                (fake_events.no_fine_trigger && strstr(text, " 1000000") != NULL));
    if (!refused) {
        char *to = fake_events.told[fake_events.ntold++ % 8];
        memset(to, 0, sizeof fake_events.told[0]);
        memcpy(to, text, fl_min(len, sizeof fake_events.told[0] - 1));
    }
    leave();
    return refused ? -EINVAL : 0;
}

static int fake_take(int fd)
{
    int rc = 0;

    enter();
    int i = slot(fd);
    if (is(i, "wake")) {
        rc = pending_wakes != 0 ? 0 : -EAGAIN;
        pending_wakes -= pending_wakes != 0;
    } else {
        fake_events.fd[i].ready = 0;
        fake_events.takes++;
    }
    leave();
    return rc;
}

static int fake_close(int fd)
{
    enter();
    fake_events.fd[slot(fd)].open = false;
    leave();
    return 0;
}

/* How many of them have something; the lock is held. */
static int look(struct pollfd *p, unsigned n)
{
    int ready = n == 0 && pending_wakes != 0;

    for (unsigned k = 0; k < n; k++) {
        p[k].revents = 0;
        if (p[k].fd < 0) {
            continue;
        }
        int i = slot(p[k].fd);
        short what = is(i, "wake") ? (pending_wakes != 0 ? POLLIN : 0) : fake_events.fd[i].ready;
        p[k].revents = (short)(what & (p[k].events | POLLERR));
        ready += p[k].revents != 0;
        if (is_of_stalls(i) && p[k].revents != 0) {
            fake_events.fd[i].ready = 0;
        }
    }
    return ready;
}

static int fake_poll(struct pollfd *p, unsigned n, uint64_t timeout_ns)
{
    uint64_t from = fl_sys.now_ns();
    int ready = atomic_load(&fake_events.poll_rc);

    atomic_fetch_add(&fake_events.polls, 1);
    if (ready != 0) {
        return ready;
    }
    atomic_store(&fake_events.untimed, timeout_ns == UINT64_MAX);
    pthread_mutex_lock(&lock);
    while ((ready = look(p, n)) == 0 &&
           (timeout_ns == UINT64_MAX || fl_sys.now_ns() - from < timeout_ns)) {
        struct timespec soon; /* the clock is the fake one: it moves without a word */
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 100000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&changed, &lock, &soon);
        atomic_fetch_add(&fake_events.looks, 1);
    }
    pthread_mutex_unlock(&lock);
    return ready;
}

void fake_events_install(void)
{
    memset(&fake_events, 0, sizeof fake_events);
    pending_wakes = 0;
    fl_events = (struct fl_events){
        .own_table = fake_own_table,
        .wake_open = fake_wake_open,
        .wake_send = fake_wake_send,
        .await_wake = fake_await_wake,
        .open = fake_open,
        .counter = fake_counter,
        .tell = fake_tell,
        .take = fake_take,
        .close = fake_close,
        .poll = fake_poll,
    };
}

void fake_events_file(const char *path, bool read_only)
{
    if (fake_events.nfile == FAKE_EVENT_FILES) {
        fl_fatal("the test has more files than it should");
    }
    fake_events.file[fake_events.nfile].path = path;
    fake_events.file[fake_events.nfile++].read_only = read_only;
}

unsigned fake_events_open(const char *path_or_null)
{
    unsigned n = 0;

    enter();
    for (int i = 0; i < FAKE_EVENT_FDS; i++) {
        n += fake_events.fd[i].open && (path_or_null == NULL || is(i, path_or_null));
    }
    leave();
    return n;
}

void fake_events_raise_two(const char *path, const char *other, short what)
{
    unsigned found = 0;

    enter();
    for (int i = 0; i < FAKE_EVENT_FDS; i++) {
        if (fake_events.fd[i].open && (is(i, path) || is(i, other))) {
            fake_events.fd[i].ready = what;
            found++;
        }
    }
    leave();
    if (found == 0) {
        fl_fatal("no worker listens to what the test raises");
    }
}

void fake_events_raise(const char *path, short what)
{
    fake_events_raise_two(path, path, what);
}

bool fake_events_is_seen(const char *path)
{
    bool seen = true;

    enter();
    for (int i = 0; i < FAKE_EVENT_FDS; i++) {
        seen = seen && !(fake_events.fd[i].open && is(i, path) && fake_events.fd[i].ready != 0);
    }
    leave();
    return seen;
}

void fake_events_stray_wake(void)
{
    enter();
    pending_wakes++;
    leave();
}
