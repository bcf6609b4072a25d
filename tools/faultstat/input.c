/* What kind of file it is decides. */
#include "faultstat/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FL_PATIENCE_MS = 1000 };

/* Say why nothing happens, when the other end of the pipe is in no hurry. */
static void wait_with_word(int fd)
{
    struct pollfd slot = {fd, POLLIN, 0};
    if (poll(&slot, 1, FL_PATIENCE_MS) == 0) {
        fputs("faultstat: reading standard input to its end, to replay it to each run; with "
              "--input /dev/null the runs get none\n",
              stderr);
    }
}

static int write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0) {
            return -errno;
        }
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Copy a pipe into a file without a name. Returns its descriptor or -errno. */
static int spool(int from)
{
    char text[65536];
    const char *folder = getenv("TMPDIR");
    int rc = 0;
    ssize_t n;
    int fd = open(folder != NULL && folder[0] != '\0' ? folder : "/tmp",
                  O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -errno;
    }
    wait_with_word(from);
    while (rc == 0 && (n = read(from, text, sizeof(text))) != 0) {
        rc = n > 0 ? write_all(fd, text, (size_t)n) : errno == EINTR ? 0 : -errno;
    }
    if (rc != 0) {
        close(fd);
    }
    return rc != 0 ? rc : fd;
}

static int open_nothing(struct fl_input *input)
{
    input->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return input->fd >= 0 ? 0 : -errno;
}

/* Decide by the kind of input->fd. */
static int take(struct fl_input *input, bool is_stdin)
{
    struct stat what;
    if (fstat(input->fd, &what) != 0) {
        return is_stdin && errno == EBADF ? open_nothing(input) : -errno;
    }
    if (S_ISDIR(what.st_mode)) {
        return -EISDIR;
    }
    if (is_stdin && (S_ISSOCK(what.st_mode) || isatty(input->fd) == 1)) {
        return open_nothing(input);
    }
    if (S_ISFIFO(what.st_mode) || S_ISSOCK(what.st_mode)) {
        input->fd = spool(input->fd);
        input->is_seekable = true;
        return input->fd >= 0 ? 0 : input->fd;
    }
    input->start = lseek(input->fd, 0, SEEK_CUR);
    input->is_seekable = S_ISREG(what.st_mode) && input->start >= 0;
    return 0;
}

int fl_input_open(struct fl_input *input, const char *path)
{
    *input = (struct fl_input){.fd = STDIN_FILENO};
    if (path != NULL) {
        input->fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    int rc = input->fd < 0 ? -errno : take(input, path == NULL);
    if (rc != 0) {
        fprintf(stderr, "faultstat: %s: %s\n", path != NULL ? path : "standard input",
                strerror(-rc));
    }
    return rc;
}

int fl_input_rewind(const struct fl_input *input)
{
    return input->is_seekable && lseek(input->fd, input->start, SEEK_SET) < 0 ? -errno : 0;
}
