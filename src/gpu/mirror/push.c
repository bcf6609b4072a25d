/* A mirror's copies. They are in order on the stream that they are given; an event a slot says when
 * its memory may be written again. */
#include "gpu/mirror/mirror.h"

#include <errno.h>

/* Handles that mean the legacy stream, on which there are no batches. */
static bool is_legacy(fl_CUstream stream)
{
    return (uintptr_t)stream <= 1;
}

static fl_CUdeviceptr twin_of(const struct fl_gpu_mirror *m, uintptr_t host)
{
    return host + m->map.delta;
}

static int gone(const struct fl_gpu_mirror *m)
{
    return m == NULL ? fl_gpu_fail(-EINVAL, "no mirror")
                     : fl_gpu_fail(-ECHILD, "a fork's child: the mirror is its parent's");
}

int fl_mirror_enter(struct fl_gpu_mirror *m, struct fl_gpu_guard *guard)
{
    if (m == NULL || fl_pinned_is_parents(&m->host)) {
        return gone(m);
    }
    if (m->map.delta == 0) {
        return fl_gpu_fail(-ENODEV, "the mirror has its host's side alone");
    }
    return fl_gpu_enter(m->gpu, guard);
}

int fl_mirror_refuse_capture(fl_CUstream stream)
{
    int capturing = FL_CU_STREAM_CAPTURE_STATUS_NONE;
    int rc =
        fl_cuda_status(fl_cuda.cuStreamIsCapturing(stream, &capturing), "cuStreamIsCapturing", 0);

    if (rc == 0 && capturing != FL_CU_STREAM_CAPTURE_STATUS_NONE) {
        rc = fl_gpu_fail(-EINPROGRESS, "the stream is being captured");
    }
    return rc;
}

/* One copy for each registration that the range lies in. */
static int copy(struct fl_gpu_mirror *m, uintptr_t host, size_t len, fl_CUstream stream, bool in)
{
    unsigned n = 0;
    size_t done = 0, part;
    int rc = 0;

    fl_assert(m->host.chunk != 0 && host - m->map.host < m->map.len);
    for (; done < len && rc == 0; done += rc == 0 ? part : 0) {
        uintptr_t from = host + done;
        size_t left = m->host.chunk - (from - m->host.range.base) % m->host.chunk;
        part = fl_min(len - done, left);
        fl_assert(part != 0);
        void *p = (void *)from; /* NOLINT(performance-no-int-to-ptr) */
        rc = in ? fl_cuda_status(fl_cuda.cuMemcpyHtoDAsync(twin_of(m, from), p, part, stream),
                                 "cuMemcpyHtoDAsync", part)
                : fl_cuda_status(fl_cuda.cuMemcpyDtoHAsync(p, twin_of(m, from), part, stream),
                                 "cuMemcpyDtoHAsync", part);
        n += rc == 0;
    }
    fl_gpu_note_copies(&m->track, n, done);
    return rc;
}

int fl_mirror_copy(struct fl_gpu_mirror *m, uintptr_t host, size_t len, fl_CUstream stream)
{
    return copy(m, host, len, stream, true);
}

static size_t len_in(const struct fl_gpu_mirror *m, unsigned slot, struct fl_range range)
{
    struct fl_range all = {m->map.host + m->slot_at[slot], m->zone};

    fl_assert(slot < m->slots && m->slot_at[slot] + m->zone <= m->map.len);
    return fl_range_common(all, range).len;
}

/* For each slot that it lies in, and for the rest: marked, or awaited. The first refusal. */
static int each_part(struct fl_gpu_mirror *m, struct fl_range range, fl_CUstream stream, bool put)
{
    size_t left = range.len;
    int first = 0;

    for (unsigned i = 0; i <= FL_MIRROR_REST; i++) {
        size_t len = i == FL_MIRROR_REST ? left : i < m->slots ? len_in(m, i, range) : 0;
        if (len != 0 && (put || first == 0)) {
            int rc = put ? fl_mark_put(m, &m->at[i], stream) : fl_mark_await(m, &m->at[i]);
            first = first != 0 ? first : rc;
        }
        left -= fl_min(left, i == FL_MIRROR_REST ? 0 : len);
    }
    return first;
}

int fl_mirror_mark(struct fl_gpu_mirror *m, struct fl_range range, fl_CUstream stream)
{
    return each_part(m, range, stream, true);
}

int fl_mirror_await(struct fl_gpu_mirror *m, struct fl_range range)
{
    return each_part(m, range, NULL, false);
}

static int copy_range(struct fl_gpu_mirror *m, uintptr_t host, size_t len, fl_CUstream stream,
                      bool in)
{
    int rc = copy(m, host, len, stream, in);
    int marked = fl_mirror_mark(m, (struct fl_range){host, len}, stream);

    return rc != 0 ? rc : marked;
}

/* All runs in one call. False: not to be had; then nothing was submitted. */
static bool push_batch(struct fl_gpu_mirror *m, uintptr_t slot, fl_CUstream stream, int *out_rc)
{
    struct fl_CUmemcpyAttributes how = {.srcAccessOrder = FL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    fl_CUdeviceptr *to = m->batch, *from = to + m->room;
    size_t *len = m->batch_len, first = 0, failed = SIZE_MAX, bytes = 0;

    if (m->runs < 2 || is_legacy(stream) || m->host.chunk < m->host.range.len ||
        !atomic_load_explicit(&m->has_batch, memory_order_relaxed)) {
        return false;
    }
    fl_assert(m->runs <= m->room);
    for (size_t i = 0; i < m->runs; i++) {
        from[i] = slot + m->run[i].offset;
        to[i] = twin_of(m, from[i]);
        len[i] = m->run[i].len;
        bytes += len[i];
    }
    fl_CUresult code =
        fl_cuda.cuMemcpyBatchAsync(to, from, len, m->runs, &how, &first, 1, &failed, stream);
    if (code == FL_CUDA_ERROR_NOT_SUPPORTED) {
        atomic_store_explicit(&m->has_batch, false, memory_order_relaxed);
        return false;
    }
    *out_rc = fl_cuda_status(code, "cuMemcpyBatchAsync", bytes);
    if (*out_rc == 0) {
        fl_gpu_note_copies(&m->track, (unsigned)m->runs, bytes);
    }
    return true;
}

static int push_runs(struct fl_gpu_mirror *m, uintptr_t slot, fl_CUstream stream)
{
    int rc = 0;

    if (push_batch(m, slot, stream, &rc)) {
        return rc;
    }
    for (size_t i = 0; i < m->runs && rc == 0; i++) {
        rc = copy(m, slot + m->run[i].offset, m->run[i].len, stream, true);
    }
    return rc;
}

int fl_gpu_mirror_push(struct fl_gpu_mirror *m, void *stream)
{
    struct fl_gpu_guard guard;
    int rc = fl_mirror_enter(m, &guard);

    if (rc != 0) {
        return rc;
    }
    rc = m->begun ? fl_mirror_refuse_capture(stream) : fl_gpu_fail(-EINVAL, "push without begin");
    if (rc == 0) {
        fl_assert(m->slot < m->slots);
        rc = push_runs(m, m->map.host + m->slot_at[m->slot], stream);
        int marked = fl_mark_put(m, &m->at[m->slot], stream); /* part of it may be under way */
        rc = rc != 0 ? rc : marked;
    }
    fl_gpu_leave(&guard);
    return rc;
}

static int range_call(struct fl_gpu_mirror *m, const void *host, size_t len, void *stream, bool in)
{
    struct fl_gpu_guard guard;
    int rc = fl_mirror_enter(m, &guard);

    if (rc != 0) {
        return rc;
    }
    rc = fl_mirror_has(m, host, len) ? fl_mirror_refuse_capture(stream)
                                     : fl_gpu_fail(-EINVAL, "not a range of the mirror");
    if (rc == 0 && len != 0) {
        rc = copy_range(m, (uintptr_t)host, len, stream, in);
    }
    fl_gpu_leave(&guard);
    return rc;
}

int fl_gpu_mirror_push_range(struct fl_gpu_mirror *m, const void *host, size_t len, void *stream)
{
    return range_call(m, host, len, stream, true);
}

int fl_gpu_mirror_pull_range(struct fl_gpu_mirror *m, void *host, size_t len, void *stream)
{
    return range_call(m, host, len, stream, false);
}

/* Its turn, or, where a plan says whose it is, the step's. */
static int next_slot(struct fl_gpu_mirror *m)
{
    if (m->plan.context != NULL) {
        return fl_follow(m);
    }
    m->slot = m->begun ? (m->slot + 1) % m->slots : m->slot;
    fl_assert(m->slot < m->slots);
    return 0;
}

int fl_gpu_mirror_begin(struct fl_gpu_mirror *m, void **out_base)
{
    struct fl_gpu_guard guard = {.pushed = false};

    if (m == NULL || fl_pinned_is_parents(&m->host)) {
        return gone(m);
    }
    if (out_base == NULL) {
        return fl_gpu_fail(-EINVAL, "begin: nowhere to put the slot's address");
    }
    int rc = m->map.delta != 0 ? fl_gpu_enter(m->gpu, &guard) : 0;
    if (rc != 0) {
        return rc;
    }
    unsigned was = m->slot;
    rc = next_slot(m);
    if (rc == 0 && m->map.delta != 0) {
        rc = fl_mark_await(m, &m->at[m->slot]);
    }
    fl_gpu_leave(&guard);
    if (rc == 0) {
        m->begun = true;
        *out_base =
            (void *)(m->map.host + m->slot_at[m->slot]); /* NOLINT(performance-no-int-to-ptr) */
    } else {
        m->slot = was;
    }
    return rc;
}
