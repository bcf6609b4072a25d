/* A mirror: host memory that is pinned, device memory of the same offsets, and the events that say
 * when a slot is free again.
 *
 * Either the blocks are given, all of them there at the same time, and the memory is the mirror's
 * own; or they are a plan's, and the host's side is the arena that the step's blocks are served
 * from: step_plan.c. One thread at a time creates, begins, pushes and destroys one mirror;
 * ranges are copied by any. */
#include "gpu/mirror/mirror.h"
#include "gpu/driver/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fl_gpu_mirror_defaults(struct fl_gpu_mirror_options *o)
{
    *o =
        (struct fl_gpu_mirror_options){.size = sizeof *o,
                                       .inputs = FL_MIRROR_SLOTS,
                                       .coalesce_gap = (size_t)128 * FL_KIB,
                                       .numa_node = -1,
                                       .fork = (enum fl_gpu_fork)fl_gpu_option(FL_OPTION_gpu_fork)};
}

/* What the caller's program knows of, and the defaults for the rest. */
static int read_options(const struct fl_gpu_mirror_options *from, struct fl_gpu_mirror_options *to)
{
    fl_gpu_mirror_defaults(to);
    if (from == NULL || from->size < offsetof(struct fl_gpu_mirror_options, inputs)) {
        return fl_gpu_fail(-EINVAL, "mirror: options of no known size");
    }
    memcpy(to, from, fl_min(from->size, sizeof *to));
    if (to->context == NULL && (to->slot == NULL || to->count == 0)) {
        return fl_gpu_fail(-EINVAL, "mirror: neither a plan nor blocks");
    }
    if (to->inputs < 1 || to->inputs > FL_MIRROR_SLOTS || (unsigned)to->fork > FL_GPU_FORK_COPY) {
        return fl_gpu_fail(-EINVAL, "mirror: one or two input slots, and a way to fork");
    }
    return 0;
}

int fl_mirror_make_room(struct fl_gpu_mirror *m, size_t runs)
{
    fl_assert(m->runs <= m->room);
    if (runs <= m->room) {
        return 0;
    }
    struct fl_mirror_run *run = calloc(runs, sizeof *run);
    fl_CUdeviceptr *batch = calloc(2 * runs, sizeof *batch);
    size_t *len = calloc(runs, sizeof *len);
    if (run == NULL || batch == NULL || len == NULL) {
        free(run);
        free(batch);
        free(len);
        return fl_gpu_fail(-ENOMEM, "no memory for a record");
    }
    free(m->run);
    free(m->batch);
    free(m->batch_len);
    m->run = run;
    m->batch = batch;
    m->batch_len = len;
    m->room = runs;
    m->runs = 0;
    return 0;
}

/* Memory of its own, as the blocks want it. */
static int take_own(struct fl_gpu_mirror *m, const struct fl_gpu *gpu,
                    const struct fl_gpu_mirror_options *o, const struct fl_pin *how)
{
    int rc = fl_mirror_make_room(m, o->count);
    struct fl_mirror_layout plan = {.run = m->run};

    if (rc == 0 && fl_mirror_lay_out(o->slot, o->count, o->inputs, o->coalesce_gap, &plan) != 0) {
        rc = fl_gpu_fail(-EINVAL, "mirror: no such alignment, or too large");
    }
    if (rc != 0) {
        return rc;
    }
    m->runs = plan.runs;
    m->zone = plan.zone;
    m->slots = o->inputs;
    m->slot_at[1] = m->slots > 1 ? plan.zone : 0;
    fl_assert(m->runs <= m->room && m->slots <= FL_MIRROR_SLOTS);
    return fl_pinned_take(&m->host, gpu, fl_max(plan.len, 1), how, true);
}

/* The context is current; the host's side is registered. */
static int make_device(struct fl_gpu_mirror *m, struct fl_gpu *gpu)
{
    size_t len = m->host.range.len;

    fl_assert(len != 0 && m->map.delta == 0);
    fl_gpu_account_join(gpu, fl_gpu_option_device_limit());
    int rc = fl_gpu_account_take(gpu, len);
    if (rc == 0) {
        rc = fl_cuda_status(fl_cuda.cuMemAlloc(&m->twin, len), "cuMemAlloc", len);
        if (rc != 0) {
            fl_gpu_account_give(gpu, len);
        }
    }
    if (rc != 0) {
        fl_gpu_account_leave(gpu);
        return rc;
    }
    m->gpu = gpu;
    m->has_batch = gpu->has_batch;
    m->map.delta = m->twin - m->host.range.base;
    return 0;
}

static int give_host(struct fl_gpu_mirror *m)
{
    return m->plan.context != NULL ? fl_follow_give(m) : fl_pinned_give(&m->host);
}

static void forget(struct fl_gpu_mirror *m)
{
    free(m->run);
    free(m->batch);
    free(m->batch_len);
    free(m);
}

/* The context is current, if there is a device. */
static int build(struct fl_gpu_mirror *m, struct fl_gpu *gpu, const struct fl_gpu_mirror_options *o)
{
    struct fl_pin how = {
        .node = o->numa_node, .threads = o->threads, .fork = fl_pinned_fork(o->fork)};
    int rc;

    m->plan.context = o->context;
    m->gap = o->coalesce_gap;
    m->gpu = gpu;
    rc = o->context != NULL ? fl_follow_take(m, &how) : take_own(m, gpu, o, &how);
    m->gpu = NULL;
    if (rc != 0) {
        return rc;
    }
    if (gpu != NULL && m->host.chunk != 0 && (rc = make_device(m, gpu)) != 0) {
        (void)give_host(m);
        return rc;
    }
    m->map.host = m->host.range.base;
    m->map.len = m->host.range.len;
    return 0;
}

static void begin_life(struct fl_gpu_mirror *m)
{
    fl_lock_init(&m->lock, FL_RANK_RUNTIME);
    m->track = (struct fl_gpu_track){
        .kind = FL_GPU_TRACK_COPIES, .device = m->gpu != NULL ? m->gpu->ordinal : -1, .owner = m};
    if (m->gpu != NULL) {
        atomic_store_explicit(&m->track.bytes, m->host.range.len, memory_order_relaxed);
        atomic_fetch_add_explicit(&m->gpu->users, 1, memory_order_relaxed);
        fl_gpu_track_open(&m->track);
    }
}

int fl_gpu_mirror_create(struct fl_gpu *gpu, const struct fl_gpu_mirror_options *o,
                         struct fl_gpu_mirror **out)
{
    struct fl_gpu_mirror_options options;
    struct fl_gpu_guard guard = {.pushed = false};
    int rc = read_options(o, &options);

    if (rc != 0) {
        return rc;
    }
    if (out == NULL) {
        return fl_gpu_fail(-EINVAL, "mirror: nowhere to put it");
    }
    struct fl_gpu_mirror *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return fl_gpu_fail(-ENOMEM, "no memory for a record");
    }
    rc = gpu != NULL ? fl_gpu_enter(gpu, &guard) : 0;
    rc = rc == 0 ? build(m, gpu, &options) : rc;
    fl_gpu_leave(&guard);
    if (rc != 0) {
        forget(m);
        return rc;
    }
    begin_life(m);
    *out = m;
    return 0;
}

/* The context is current, and nothing that was submitted uses the mirror any more. The first
 * refusal is told; what was refused is lost. */
static int end_device(struct fl_gpu_mirror *m)
{
    size_t len = m->host.range.len;
    int rc = fl_cuda_status(fl_cuda.cuMemFree(m->twin), "cuMemFree", len), given = give_host(m);

    fl_assert(m->map.delta != 0 && len == m->map.len);
    if (rc == 0) {
        fl_gpu_account_give(m->gpu, len);
    }
    return rc != 0 ? rc : given;
}

static void end_marks(struct fl_gpu_mirror *m, bool driver)
{
    for (unsigned i = 0; i <= FL_MIRROR_REST; i++) {
        fl_marks_end(&m->at[i], driver);
    }
}

/* All that it was told to copy has been. */
static int await_copies(struct fl_gpu_mirror *m)
{
    int rc = 0;

    for (unsigned i = 0; i <= FL_MIRROR_REST && rc == 0; i++) {
        rc = fl_mark_await(m, &m->at[i]);
    }
    if (rc == 0 && atomic_load_explicit(&m->is_lost, memory_order_relaxed)) {
        rc = fl_gpu_fail(-EIO, "the driver does not say when the mirror's copies are done");
    }
    return rc;
}

int fl_gpu_mirror_destroy(struct fl_gpu_mirror *m)
{
    struct fl_gpu_guard guard;
    int rc = 0;

    if (m == NULL || fl_pinned_is_parents(&m->host)) {
        return m == NULL ? fl_gpu_fail(-EINVAL, "no mirror")
                         : fl_gpu_fail(-ECHILD, "a fork's child: the mirror is its parent's");
    }
    if (m->gpu == NULL) {
        rc = give_host(m);
        forget(m);
        return rc;
    }
    rc = fl_gpu_enter(m->gpu, &guard);
    if (rc != 0 && rc != -ESHUTDOWN) {
        return rc;
    }
    if (rc == 0) {
        rc = await_copies(m);
        if (rc == -EINPROGRESS) { /* a graph is captured: nothing may be waited for now */
            fl_gpu_leave(&guard);
            return rc;
        }
        rc = rc == 0 ? end_device(m) : rc; /* else copies may be under way: it is left alone */
        end_marks(m, true);
        fl_gpu_leave(&guard);
    } else { /* it went with its context */
        fl_gpu_account_give(m->gpu, m->host.range.len);
    }
    end_marks(m, false);
    fl_gpu_track_close(&m->track);
    fl_gpu_account_leave(m->gpu);
    atomic_fetch_sub_explicit(&m->gpu->users, 1, memory_order_release);
    forget(m); /* with the driver gone, memory stays as it is: it may not be used again */
    return rc;
}

const struct fl_gpu_mirror_map *fl_gpu_mirror_map(const struct fl_gpu_mirror *m)
{
    return m != NULL ? &m->map : NULL;
}
