/* From a file to the mirror's host side and on to the device, piece by piece: while one is read the
 * one before is copied. */
#include "gpu/mirror/mirror.h"

#include <errno.h>

struct reading {
    struct fl_gpu_mirror *m;
    fl_CUstream stream;
    bool device;
    int rc; /* of the copies; the first that is not 0 */
};

static void pass_on(void *arg, struct fl_range part)
{
    struct reading *r = arg;

    if (r->device && r->rc == 0) {
        r->rc = fl_mirror_copy(r->m, part.base, part.len, r->stream);
    }
}

static bool may_ring(void)
{
    const struct fl_options *o = fl_gpu_host.options;

    return o == NULL || (o->value[FL_OPTION_disable] & FL_DISABLE_URING) == 0;
}

/* The context is current, if there is a device. */
static int read_in(struct reading *r, int fd, uint64_t offset, struct fl_range to)
{
    struct fl_read how = {
        .fd = fd, .offset = offset, .to = to, .ring = may_ring(), .done = pass_on, .arg = r};
    int rc = r->device ? fl_mirror_refuse_capture(r->stream) : 0;

    rc = rc == 0 && r->device ? fl_mirror_await(r->m, to) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = fl_read_file(&how);
    if (rc != 0) {
        (void)fl_gpu_fail(rc, rc == -ENODATA ? "the file ends before" : "the file cannot be read");
    }
    int marked = r->device ? fl_mirror_mark(r->m, to, r->stream) : 0;
    rc = rc != 0 ? rc : r->rc;
    return rc != 0 ? rc : marked;
}

int fl_gpu_mirror_read(struct fl_gpu_mirror *m, int fd, uint64_t offset, void *host, size_t len,
                       void *stream)
{
    struct reading r = {.m = m, .stream = stream};
    struct fl_gpu_guard guard = {.pushed = false};
    int rc = fl_mirror_enter(m, &guard);

    if (rc != 0 && rc != -ENODEV) {
        return rc;
    }
    r.device = rc == 0;
    if (!fl_mirror_has(m, host, len) || fd < 0 || offset > INT64_MAX - len) {
        rc = fl_gpu_fail(-EINVAL, "not a range of the mirror, or no file");
    } else {
        rc = read_in(&r, fd, offset, (struct fl_range){(uintptr_t)host, len});
    }
    fl_gpu_leave(&guard);
    return rc == 0 && !r.device
               ? fl_gpu_fail(-ENODEV, "it is read, but the mirror has its host's side alone")
               : rc;
}
