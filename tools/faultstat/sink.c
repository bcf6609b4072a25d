/* Descriptors by number, files by name. */
#include "faultstat/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FL_SINKS_MOST = 4, FL_STOPS = 4 };
static const int stop[FL_STOPS] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

/* The named files that are open; NULL: none. */
static const struct fl_sink *volatile open_sinks[FL_SINKS_MOST];
static pid_t owner; /* who opened them; its children leave them alone */

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* A signal ends us before all is written: a file that was not there before goes. */
static void on_stop(int number)
{
    for (size_t i = 0; i < FL_SINKS_MOST && getpid() == owner; i++) {
        if (open_sinks[i] != NULL) {
            if (open_sinks[i]->is_new) {
                unlink(open_sinks[i]->path);
            }
            say("faultstat: interrupted: ");
            say(open_sinks[i]->path);
            say(" is not written\n");
        }
    }
    raise(number); /* by its default action, once this handler returns */
}

static void block_stops(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < FL_STOPS; i++) {
        sigaddset(&set, stop[i]);
    }
    sigprocmask(SIG_BLOCK, &set, before);
}

/* What is ignored, as under nohup(1), stays so. */
static void catch_stops(void)
{
    struct sigaction now;
    const struct sigaction ours = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < FL_STOPS; i++) {
        if (sigaction(stop[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
            sigaction(stop[i], &ours, NULL);
        }
    }
    owner = getpid();
}

/* Put `with` in the place of `what`; without such a place a signal finds no file to name. */
static void replace_open(const struct fl_sink *what, const struct fl_sink *with)
{
    for (size_t i = 0; i < FL_SINKS_MOST; i++) {
        if (open_sinks[i] == what) {
            open_sinks[i] = with;
            return;
        }
    }
}

/* The descriptor that a path stands for, or -1. */
static int named_descriptor(const char *path)
{
    static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0) {
        return STDOUT_FILENO;
    }
    if (strcmp(path, "/dev/stderr") == 0) {
        return STDERR_FILENO;
    }
    for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++) {
        size_t len = strlen(folder[i]);
        char *end;
        if (strncmp(path, folder[i], len) == 0 && path[len] >= '0' && path[len] <= '9') {
            long fd = strtol(path + len, &end, 10);
            return *end == '\0' && fd < 1 << 20 ? (int)fd : -1;
        }
    }
    return -1;
}

static int open_named(struct fl_sink *sink)
{
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
    sigset_t before;
    block_stops(&before);
    int fd = open(sink->path, flags | O_EXCL, 0666);
    sink->is_named = true;
    sink->is_new = fd >= 0;
    replace_open(NULL, sink);
    catch_stops();
    sigprocmask(SIG_SETMASK, &before, NULL);
    return fd >= 0 || errno != EEXIST ? fd : open(sink->path, flags, 0666);
}

int fl_sink_open(struct fl_sink *sink, const char *path)
{
    *sink = (struct fl_sink){.path = path};
    int number = named_descriptor(path);
    int fd = number >= 0 ? fcntl(number, F_DUPFD_CLOEXEC, 0) : open_named(sink);
    sink->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (sink->file == NULL) {
        int rc = -errno;
        replace_open(sink, NULL);
        fprintf(stderr, "faultstat: %s: %s\n", path, strerror(-rc));
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    return 0;
}

FILE *fl_sink_begin(struct fl_sink *sink)
{
    struct stat what;
    int fd = fileno(sink->file);
    if (sink->is_named && fstat(fd, &what) == 0 && S_ISREG(what.st_mode)) {
        (void)!ftruncate(fd, 0); /* it is empty or was written before: nothing else may fail */
    }
    errno = 0;
    return sink->file;
}

FILE *fl_sink_begin_lines(struct fl_sink *sink)
{
    replace_open(sink, NULL);
    return fl_sink_begin(sink);
}

int fl_sink_end(struct fl_sink *sink)
{
    bool is_bad = ferror(sink->file) != 0;
    is_bad = fclose(sink->file) != 0 || is_bad;
    sink->file = NULL;
    replace_open(sink, NULL);
    if (!is_bad) {
        return 0;
    }
    int rc = errno != 0 ? -errno : -EIO;
    fprintf(stderr, "faultstat: %s: %s\n", sink->path, strerror(-rc));
    return rc;
}

void fl_sink_drop(struct fl_sink *sink)
{
    if (sink->file != NULL) {
        fclose(sink->file);
        sink->file = NULL;
        if (sink->is_named && sink->is_new) {
            unlink(sink->path);
        }
        replace_open(sink, NULL);
    }
}
