/* Diagnostics by write(2) alone: usable early, in signal handlers and under any lock. */
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KEPT_FROM = 100 }; /* descriptors below are the program's to count on */

/* A copy of standard error, and the file it was; -1: none. Constant after boot. */
static struct {
    int fd;
    dev_t device;
    ino_t inode;
} kept = {.fd = -1};

void fl_say(const char *text)
{
    char line[512];
    struct fl_text t = fl_text_on(line, sizeof line - 1);

    fl_text_str(&t, "faultless: ");
    fl_text_str(&t, text);
    for (size_t i = 0; i < t.len; i++) { /* one line, whatever an option's value holds */
        if (line[i] == '\n' || line[i] == '\r') {
            line[i] = '?';
        }
    }
    line[t.len++] = '\n';
    (void)fl_sys.write(STDERR_FILENO, line, t.len);
}

void fl_say_keep(void)
{
    struct stat file = {0};

    if (kept.fd < 0 && fl_call(SYS_fstat, STDERR_FILENO, &file) == 0) {
        kept.fd = (int)fl_call(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, KEPT_FROM);
        kept.device = file.st_dev;
        kept.inode = file.st_ino;
    }
}

/* The program may have closed it with all others, and have a file of its own there. */
static bool is_kept(void)
{
    struct stat file = {0};

    return kept.fd >= 0 && !fl_sys_is_confined() && fl_call(SYS_fstat, kept.fd, &file) == 0 &&
           file.st_dev == kept.device && file.st_ino == kept.inode;
}

void fl_say_last(const char *text, size_t len)
{
    if (fl_sys.write(STDERR_FILENO, text, len) == -EBADF && is_kept()) {
        (void)fl_sys.write(kept.fd, text, len);
    }
}

_Noreturn void fl_assert_failed(const char *cond, const char *file, unsigned line)
{
    char text[256];
    struct fl_text t = fl_text_on(text, sizeof text);

    fl_text_str(&t, file);
    fl_text_str(&t, ":");
    fl_text_u64(&t, line);
    fl_text_str(&t, ": does not hold: ");
    fl_text_str(&t, cond);
    fl_fatal(text);
}

_Noreturn void fl_fatal(const char *text)
{
    fl_say(text);
    abort();
}
