/* Kernel settings that a test changes for a while, under a lock that the tests share. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETTINGS = 8, VALUE = 128 };

static struct setting {
    const char *path;
    char old[VALUE];
    int watch; /* our end of the pipe: the watcher acts when it closes */
    pid_t watcher;
} settings[SETTINGS];
static size_t nsettings;

bool fl_write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int error = errno;

    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return done;
}

/* sysfs marks the chosen word: "always [madvise] never". */
static bool read_setting(const char *path, char *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, VALUE - 1) : -1;

    if (fd >= 0) {
        close(fd);
    }
    out[n > 0 ? n : 0] = '\0';
    char *open_mark = strchr(out, '['), *close_mark = strchr(out, ']');
    if (open_mark != NULL && close_mark > open_mark) {
        *close_mark = '\0';
        memmove(out, open_mark + 1, (size_t)(close_mark - open_mark));
    }
    return n > 0;
}

static void lock_machine(void)
{
    static int fd = -1;

    if (fd < 0) {
        fd = open("/tmp/faultless-test-sysctl.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    }
}

bool fl_sysctl_set(const char *path, const char *value)
{
    struct setting *s = &settings[nsettings];
    int ends[2];

    assert_true(nsettings < SETTINGS);
    lock_machine();
    if (!read_setting(path, s->old) || pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    s->path = path;
    s->watch = ends[1];
    s->watcher = fork();
    assert_true(s->watcher >= 0);
    if (s->watcher == 0) {
        char c;
        setsid(); /* a kill of the test's group spares it */
        for (size_t i = 0; i <= nsettings; i++) {
            close(settings[i].watch);
        }
        (void)!read(ends[0], &c, 1);
        _exit(fl_write_text(path, s->old) ? 0 : 1);
    }
    close(ends[0]);
    nsettings++;
    return fl_write_text(path, value);
}

void fl_sysctl_restore(void)
{
    while (nsettings > 0) {
        struct setting *s = &settings[--nsettings];
        close(s->watch);
        (void)waitpid(s->watcher, NULL, 0);
    }
}

long long fl_read_number(const char *path, const char *key)
{
    static char text[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *p = n > 0 ? strstr(text, key) : NULL;
    return p != NULL ? atoll(p + strlen(key)) : -1;
}

const char *fl_thp_setting(void)
{
    static char word[VALUE];

    (void)read_setting("/sys/kernel/mm/transparent_hugepage/enabled", word);
    return word;
}

bool fl_linux_has(unsigned major, unsigned minor)
{
    struct utsname u;
    unsigned its_major = 0, its_minor = 0;

    assert_int_equal(uname(&u), 0);
    assert_int_equal(sscanf(u.release, "%u.%u", &its_major, &its_minor), 2);
    return its_major > major || (its_major == major && its_minor >= minor);
}
