/* Descriptors and wakes on the real kernel, in a thread with a table of its own. */
#include "sys/sys.h"
#include "cases.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <sched.h>

/* What the thread found: it must not print, or fail a test, itself. */
static struct {
    int own_table, wake_open, stray, first_fd, polled, took, took_again, timed_out;
    bool blocked;
} found;
static _Atomic int tid;
static _Atomic bool may_end;

static void *wait_for_wake(void *arg)
{
    sigset_t now;
    int fd = -1;

    found.own_table = fl_events.own_table();
    found.first_fd = fcntl(0, F_GETFD);
    found.wake_open = fl_events.wake_open(&fd);
    found.stray = fl_events.take(fd);
    sigemptyset(&now);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    found.blocked = sigismember(&now, SIGUSR1) == 1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    found.timed_out = fl_events.poll(&p, 1, 1);
    atomic_store(&tid, gettid());
    found.polled = fl_events.poll(&p, 1, UINT64_MAX);
    found.took = fl_events.take(fd);
    found.took_again = fl_events.take(fd);
    (void)fl_events.close(fd);
    while (!atomic_load(&may_end)) {
        sched_yield();
    }
    return arg;
}

CASE(a_thread_with_its_own_table_is_woken)
{
    pthread_t t;
    int fd[2];
    char text[1];

    assert_int_equal(pipe(fd), 0);
    assert_int_equal(pthread_create(&t, NULL, wait_for_wake, NULL), 0);
    while (atomic_load(&tid) == 0) {
        sched_yield();
    }
    assert_int_equal(fl_events.wake_send(getpid(), tid), 0);
    close(fd[1]);
    assert_int_equal(read(fd[0], text, 1), 0); /* the thread lives, and holds no copy of the pipe */
    atomic_store(&may_end, true);
    assert_int_equal(pthread_join(t, NULL), 0);
    close(fd[0]);
    if (found.own_table == -ENOSYS || found.own_table == -EPERM) {
        print_message("           close_range(2) is refused here\n");
    } else {
        assert_int_equal(found.own_table, 0);
        assert_int_equal(found.first_fd, -1);
        assert_true(fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0); /* ours are as they were */
    }
    assert_int_equal(found.wake_open, 0);
    assert_int_equal(found.stray, -EAGAIN); /* what tried it is gone */
    assert_false(found.blocked);            /* no other signal is */
    assert_int_equal(found.timed_out, 0);
    assert_int_equal(found.polled, 1);
    assert_int_equal(found.took, 0);
    assert_int_equal(found.took_again, -EAGAIN);
}

/* A thread that was joined is there for a moment yet. */
CASE(no_thread_is_woken_that_is_not_there)
{
    int rc;

    do {
        rc = fl_events.wake_send(getpid(), tid);
    } while (rc == 0);
    assert_int_equal(rc, -ESRCH);
}

CASE(a_counter_is_raised_and_taken)
{
    const uint64_t one = 1;
    int fd;

    assert_int_equal(fl_events.counter(&fd), 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(fl_events.poll(&p, 1, 0), 0);
    assert_int_equal(fl_events.take(fd), -EAGAIN);
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
    assert_int_equal(fl_events.poll(&p, 1, UINT64_MAX), 1);
    assert_int_equal(fl_events.take(fd), 0);
    assert_int_equal(fl_events.poll(&p, 1, 0), 0);
    assert_int_equal(fl_events.close(fd), 0);
    assert_int_equal(fl_events.close(fd), -EBADF);
}

CASE(a_file_is_read_from_its_start_each_time)
{
    int fd;

    assert_int_equal(fl_events.open("/proc/self/stat", true, &fd), geteuid() == 0 ? 0 : -EACCES);
    if (fd >= 0) {
        assert_int_equal(fl_events.close(fd), 0);
    }
    assert_int_equal(fl_events.open("/nonexistent/file", false, &fd), -ENOENT);
    assert_int_equal(fd, -1);
    assert_int_equal(fl_events.open("/proc/self/stat", false, &fd), 0);
    assert_int_equal(fl_events.take(fd), 0);
    off_t once = lseek(fd, 0, SEEK_CUR);
    assert_int_equal(fl_events.take(fd), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), once);
    assert_true(once > 0);
    assert_int_equal(fl_events.tell(fd, "x", 1), -EBADF); /* opened for reading */
    assert_int_equal(fl_events.close(fd), 0);
}

/* Under a filter of its own each of these calls could end the process. */
static int is_refused_when_confined(void)
{
    struct fl_range none = {0, 0};
    size_t present, own;
    int fd;

    fl_sys_confine(true);
    return fl_events.own_table() == -EPERM && fl_events.wake_send(getpid(), gettid()) == -EPERM &&
                   fl_events.open("/proc/self/stat", false, &fd) == -EPERM &&
                   fl_events.poll(NULL, 0, 0) == -EPERM &&
                   fl_sys.find_split(none, &none) == -EPERM &&
                   fl_sys.survey(none, &present, &own) == -EPERM
               ? 0
               : 2;
}

CASE(a_confined_thread_does_none_of_it)
{
    int status;

    pid_t pid = fork();
    if (pid == 0) {
        _exit(is_refused_when_confined());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    fl_sys_boot();
    return RUN_CASES();
}
