/* Tracks; and of them the statistics of a device: what its pools and mirrors have now, and counted
 * so far, with those that have ended.
 *
 * State: the list of tracks, and `ended`. Lock: `mutex`, which comes before an owner's. A pthread
 * mutex: the folder is a program like any other, and its callers hold locks of ranks that are
 * theirs. */
#include "gpu/driver/driver.h"
#include "gpu/trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fl_gpu_track *tracks;
static struct ended {
    bool was_used;
    struct fl_stats_gpu sum; /* counts so far; what is now is 0 */
} ended[FL_GPU_DEVICES];

static uint64_t load(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static bool is_kept(const struct fl_gpu_track *t)
{
    return t->device >= 0 && t->device < FL_GPU_DEVICES;
}

static bool add(const struct fl_gpu_track *t, bool soon, struct fl_stats_gpu *to)
{
    if (t->kind == FL_GPU_TRACK_POOL) {
        return t->add == NULL || t->add(t->owner, soon, to);
    }
    to->mirrors++;
    to->mirror_bytes += load(&t->bytes);
    to->pinned_bytes += load(&t->bytes);
    to->copies += load(&t->copies);
    to->copied_bytes += load(&t->copied_bytes);
    to->stalls += load(&t->stalls);
    return true;
}

/* What it counted is kept. */
static void keep(const struct fl_gpu_track *t)
{
    struct fl_stats_gpu *s;

    if (is_kept(t)) {
        ended[t->device].was_used = true;
        s = &ended[t->device].sum;
        (void)add(t, false, s);
        s->pools = s->occupied_bytes = s->free_bytes = s->requested_bytes = 0;
        s->pinned_pools = s->pinned_bytes = s->mirrors = s->mirror_bytes = 0;
    }
}

void fl_gpu_track_open(struct fl_gpu_track *k)
{
    (void)pthread_mutex_lock(&mutex);
    k->next = tracks;
    tracks = k;
    (void)pthread_mutex_unlock(&mutex);
}

void fl_gpu_track_close(struct fl_gpu_track *k)
{
    (void)pthread_mutex_lock(&mutex);
    keep(k);
    for (struct fl_gpu_track **at = &tracks; *at != NULL; at = &(*at)->next) {
        if (*at == k) {
            *at = k->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
}

bool fl_gpu_tracks_acquire(bool soon, const struct fl_gpu_track **out)
{
    int rc = soon ? pthread_mutex_trylock(&mutex) : pthread_mutex_lock(&mutex);

    *out = tracks;
    return rc == 0;
}

void fl_gpu_tracks_release(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

void fl_gpu_tracks_fork_child(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    memset(ended, 0, sizeof ended);
    tracks = NULL; /* the parent's pools are not the child's */
}

/* Of the devices from `first` on, `n` of them; `used` says which. */
struct reading {
    int first, n;
    bool soon;
    struct fl_stats_gpu *gpu;
    bool *used;
};

static bool read_devices(struct reading *r)
{
    const struct fl_gpu_track *t;

    fl_assert(r->first >= 0 && r->first + r->n <= FL_GPU_DEVICES);
    if (!fl_gpu_tracks_acquire(r->soon, &t)) {
        return false;
    }
    for (int i = 0; i < r->n; i++) {
        r->gpu[i] = ended[r->first + i].sum;
        r->gpu[i].id = (unsigned)(r->first + i);
        r->used[i] = ended[r->first + i].was_used;
    }
    for (; t != NULL; t = t->next) {
        int at = t->device - r->first;
        if (at >= 0 && at < r->n) {
            r->used[at] = true;
            (void)add(t, r->soon, &r->gpu[at]);
        }
    }
    fl_gpu_tracks_release();
    return true;
}

void fl_gpu_stats_read(struct fl_stats_gpus *out, bool soon)
{
    bool used[FL_STATS_GPUS];
    struct reading r = {0, FL_STATS_GPUS, soon, out->gpu, used};

    out->n = 0;
    if (fl_gpu_is_forked() || !read_devices(&r)) {
        return;
    }
    for (int i = 0; i < FL_STATS_GPUS; i++) {
        if (used[i] && fl_gpu_account_read(i, soon, &out->gpu[i])) {
            out->gpu[out->n++] = out->gpu[i];
        }
    }
}

_Static_assert(sizeof(struct fl_gpu_device_stats) == sizeof(struct fl_stats_gpu),
               "the public struct is its size and then FL_STATS_GPU_FIELDS, in that order");

int fl_gpu_device_stats(int device, struct fl_gpu_device_stats *out)
{
    struct fl_stats_gpu s;
    struct fl_gpu_device_stats all;
    bool used;
    struct reading r = {device, 1, false, &s, &used};
    size_t size = out == NULL ? 0 : (size_t)out->size;

    if (device < 0 || device >= FL_GPU_DEVICES || size < sizeof out->size || size > sizeof *out) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_device_stats: no such device, or size is not set");
    }
    if (fl_gpu_is_forked()) {
        return fl_gpu_fail(-ECHILD, "a fork's child: the devices are its parent's");
    }
    (void)read_devices(&r);
    (void)fl_gpu_account_read(device, false, &s);
    all.size = size;
#define X(field, kind, text) all.field = s.field;
    FL_STATS_GPU_FIELDS(X)
#undef X
    memcpy(out, &all, size);
    return 0;
}
