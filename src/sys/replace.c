/* A file that is replaced: its readers see the old one whole or the new one whole.
 *
 * The new one is written without a name, so a process that ends while it writes or flushes leaves
 * nothing behind. Then it gets the name; where another file has that, a name beside it, and is
 * renamed at once. Where the file system has no files without a name (NFS, FUSE), or there is no
 * /proc to name one by, it has the name beside from the beginning. Sources: open(2) (O_TMPFILE),
 * linkat(2). */
#include "sys/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH = 1024 }; /* stacks may be small */

struct replacement {
    const char *path;
    const void *data;
    size_t len;
    mode_t mode;       /* of the regular file that is there; 0: there is none */
    bool taken;        /* there is one, or a link */
    char beside[PATH]; /* the folder first, then the name beside `path` */
};

/* PATH, a dot and a number that no other process has, in another namespace of process ids
 * either. */
static int name_beside(struct replacement *r)
{
    struct fl_text t = fl_text_on(r->beside, sizeof r->beside);
    uint64_t number = fl_sys_linux.now_ns() ^ (uint64_t)fl_call_pid() << 48;

    (void)fl_call(SYS_getrandom, &number, sizeof number, GRND_NONBLOCK);
    fl_text_str(&t, r->path);
    fl_text_str(&t, ".");
    fl_text_u64(&t, number);
    return t.len + 1 < sizeof r->beside ? 0 : -ENAMETOOLONG;
}

static mode_t mode_to_open(const struct replacement *r)
{
    return r->mode != 0 ? 0600 : 0644;
}

static int fill(const struct replacement *r, long fd)
{
    int rc = fl_linux_write((int)fd, r->data, r->len);

    if (rc == 0 && r->mode != 0) {
        rc = (int)fl_call(SYS_fchmod, fd, r->mode & 0777);
    }
    return rc == 0 ? (int)fl_call(SYS_fsync, fd) : rc;
}

/* The name beside becomes the name. */
static int rename_beside(const struct replacement *r)
{
    int rc = (int)fl_call(SYS_renameat, AT_FDCWD, r->beside, AT_FDCWD, r->path);

    if (rc != 0) {
        (void)fl_call(SYS_unlinkat, AT_FDCWD, r->beside, 0);
    }
    return rc;
}

static long open_unnamed(struct replacement *r)
{
    const char *slash = strrchr(r->path, '/');
    size_t len = slash == NULL ? 0 : slash == r->path ? 1 : (size_t)(slash - r->path);

    if (len == 0) {
        r->beside[len++] = '.';
    } else {
        memcpy(r->beside, r->path, len);
    }
    r->beside[len] = '\0';
    return fl_call(SYS_openat, AT_FDCWD, r->beside, O_WRONLY | O_TMPFILE | O_CLOEXEC,
                   mode_to_open(r));
}

/* By the thread's own number: the worker has a table of descriptors of its own. */
static int give_name(long fd, const char *name)
{
    char own[64];
    struct fl_text t = fl_text_on(own, sizeof own);

    fl_text_str(&t, "/proc/thread-self/fd/");
    fl_text_u64(&t, (uint64_t)fd);
    return (int)fl_call(SYS_linkat, AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* *out_can: a file without a name was to be had, and could be given one. */
static int replace_by_unnamed(struct replacement *r, bool *out_can)
{
    long fd = open_unnamed(r);

    *out_can = fd >= 0;
    if (fd < 0) {
        return (int)fd;
    }
    int rc = fill(r, fd);
    if (rc == 0) {
        rc = r->taken ? -EEXIST : give_name(fd, r->path);
        if (rc == -EEXIST && (rc = name_beside(r)) == 0 && (rc = give_name(fd, r->beside)) == 0) {
            rc = rename_beside(r);
        } else {
            *out_can = rc == 0;
        }
    }
    (void)fl_call(SYS_close, fd);
    return rc;
}

static int replace_by_named(struct replacement *r)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
    int rc = name_beside(r);
    long fd = rc == 0 ? fl_call(SYS_openat, AT_FDCWD, r->beside, FLAGS, mode_to_open(r)) : rc;

    if (fd < 0) {
        return (int)fd;
    }
    rc = fill(r, fd);
    (void)fl_call(SYS_close, fd);
    if (rc != 0) {
        (void)fl_call(SYS_unlinkat, AT_FDCWD, r->beside, 0);
        return rc;
    }
    return rename_beside(r);
}

int fl_linux_replace_file(const char *path, const void *data, size_t len)
{
    struct replacement r = {.path = path, .data = data, .len = len};
    struct stat old = {0};
    bool can;

    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    int rc = name_beside(&r); /* a folder's name is shorter */
    if (rc != 0) {
        return rc;
    }
    r.taken = fl_call(SYS_newfstatat, AT_FDCWD, path, &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (r.taken && S_ISREG(old.st_mode)) {
        r.mode = old.st_mode;
    } else if (r.taken && !S_ISLNK(old.st_mode)) {
        return -EINVAL; /* root could do it to /dev/null */
    }
    rc = replace_by_unnamed(&r, &can);
    return can ? rc : replace_by_named(&r);
}
