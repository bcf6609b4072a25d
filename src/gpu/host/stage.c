/* Copies from memory that is in no mirror, by way of pinned buffers: the caller may change what
 * it gave as soon as this returns.
 *
 * One set of buffers a device, made when it is first wanted: few large ones, which a long copy goes
 * through piece by piece while the device fetches the piece before; and many small ones, so that a
 * short copy does not wait for the others. Not even a short one goes straight to the driver: were
 * its source registered, the copy would still read it when the call has returned. A
 * buffer's event is recorded behind its copy; the buffer is used again when that is done.
 * State: struct fl_stage, one a device; which buffer is taken, under its lock. */
#include "gpu/host/host.h"
#include "gpu/trace/trace.h"

#include <errno.h>
#include <stdlib.h>

enum { LARGE = 4, SMALL = 64, SHORT = 64 * FL_KIB, LONG = 8 * FL_MIB };

enum buffer_state {
    BUFFER_FREE,
    BUFFER_TAKEN, /* a thread fills it */
    BUFFER_SENT,  /* the device may still read it: the event says */
    BUFFER_LOST,  /* nothing says */
};

struct buffer {
    fl_CUevent event; /* NULL: none yet. Its taker's */
    enum buffer_state state;
    uint64_t sent; /* which one it was, so that the oldest is waited for */
};

struct fl_stage {
    struct fl_lock lock; /* rank RUNTIME; no driver call is made under it */
    _Atomic uint32_t
        given;      /* changes whenever a buffer is given back: what waits for one waits for that */
    uint64_t sends; /* Lock: own */
    struct fl_pinned host; /* LARGE long ones, then SMALL short ones */
    struct buffer large[LARGE], small[SMALL];
    struct fl_gpu_track track;
};

static struct fl_lock making; /* rank RUNTIME: the first makes them, the others wait */

int fl_gpu_refuse_capture(fl_CUstream stream)
{
    int capturing = FL_CU_STREAM_CAPTURE_STATUS_NONE;
    int rc =
        fl_cuda_status(fl_cuda.cuStreamIsCapturing(stream, &capturing), "cuStreamIsCapturing", 0);

    if (rc == 0 && capturing != FL_CU_STREAM_CAPTURE_STATUS_NONE) {
        rc = fl_gpu_fail(-EINPROGRESS, "the stream is being captured");
    }
    return rc;
}

static struct buffer *find(struct buffer *b, size_t n, enum buffer_state state)
{
    struct buffer *found = NULL;

    for (size_t i = 0; i < n; i++) {
        if (b[i].state == state && (found == NULL || b[i].sent < found->sent)) {
            found = &b[i];
        }
    }
    return found;
}

/* `*was`: its state until now. Waits while all are TAKEN. NULL: all are LOST. */
static struct buffer *take(struct fl_stage *s, bool is_short, enum buffer_state *was)
{
    struct buffer *all = is_short ? s->small : s->large, *b;
    size_t n = is_short ? SMALL : LARGE;

    for (;;) {
        fl_lock_acquire(&s->lock);
        uint32_t given = atomic_load_explicit(&s->given, memory_order_relaxed);
        b = find(all, n, BUFFER_FREE);
        b = b != NULL ? b : find(all, n, BUFFER_SENT);
        if (b != NULL) {
            *was = b->state;
            b->state = BUFFER_TAKEN;
        }
        bool taken = find(all, n, BUFFER_TAKEN) != NULL;
        fl_lock_release(&s->lock);
        if (b != NULL || !taken) {
            return b;
        }
        (void)fl_sys.wait(&s->given, given, 0);
    }
}

static void give(struct fl_stage *s, struct buffer *b, enum buffer_state state)
{
    fl_lock_acquire(&s->lock);
    b->state = state;
    b->sent = ++s->sends;
    atomic_fetch_add_explicit(&s->given, 1, memory_order_relaxed);
    fl_lock_release(&s->lock);
    /* All: one may wait for a long one, another for a short one. */
    (void)fl_sys.wake(&s->given, INT32_MAX);
}

static void *bytes_of(const struct fl_stage *s, const struct buffer *b)
{
    bool is_short = b >= s->small && b < s->small + SMALL;
    size_t at = is_short ? (size_t)LARGE * LONG + (size_t)(b - s->small) * SHORT
                         : (size_t)(b - s->large) * LONG;

    return (void *)(s->host.range.base + at); /* NOLINT(performance-no-int-to-ptr) */
}

/* The device has read what was in it. */
static int await(struct fl_stage *s, struct buffer *b)
{
    fl_CUresult code = fl_cuda.cuEventQuery(b->event);

    if (code == FL_CUDA_ERROR_NOT_READY) {
        uint64_t began = fl_sys.now_ns();
        code = fl_cuda.cuEventSynchronize(b->event);
        fl_gpu_note_stall(&s->track, began);
    }
    return fl_cuda_status(code, "cuEventSynchronize", 0);
}

static int make_event(struct buffer *b)
{
    fl_CUevent event = NULL;
    int rc = b->event != NULL
                 ? 0
                 : fl_cuda_status(fl_cuda.cuEventCreate(&event, FL_CU_EVENT_DISABLE_TIMING),
                                  "cuEventCreate", 0);

    if (rc == 0 && b->event == NULL) {
        b->event = event;
    }
    return rc;
}

static int send(struct fl_stage *s, struct buffer *b, uint64_t to, size_t len, fl_CUstream stream)
{
    int rc = fl_cuda_status(fl_cuda.cuMemcpyHtoDAsync(to, bytes_of(s, b), len, stream),
                            "cuMemcpyHtoDAsync", len);

    if (rc != 0) {
        give(s, b, BUFFER_FREE);
        return rc;
    }
    fl_gpu_note_copies(&s->track, 1, len);
    rc = fl_cuda_status(fl_cuda.cuEventRecord(b->event, stream), "cuEventRecord", 0);
    if (rc != 0) {
        bool done = fl_cuda.cuStreamSynchronize(stream) == FL_CUDA_SUCCESS;
        give(s, b, done ? BUFFER_FREE : BUFFER_LOST);
        return rc;
    }
    give(s, b, BUFFER_SENT);
    return 0;
}

static int stage_piece(struct fl_stage *s, uint64_t to, const void *from, size_t len,
                       fl_CUstream stream)
{
    enum buffer_state was = BUFFER_FREE;
    struct buffer *b = take(s, len <= SHORT, &was);
    if (b == NULL) {
        return fl_gpu_fail(-EIO, "stage: the device has kept all buffers");
    }
    int rc = was == BUFFER_SENT ? await(s, b) : 0;

    if (rc != 0) {
        give(s, b, was);
        return rc;
    }
    rc = make_event(b);
    if (rc != 0) {
        give(s, b, BUFFER_FREE);
        return rc;
    }
    fl_copy_streaming(bytes_of(s, b), from, len);
    return send(s, b, to, len, stream);
}

/* Where the driver registers nothing: it has buffers of its own, but it is not known when it is
 * done with the source? */
static int copy_plainly(uint64_t to, const void *from, size_t len, fl_CUstream stream)
{
    int rc =
        fl_cuda_status(fl_cuda.cuMemcpyHtoDAsync(to, from, len, stream), "cuMemcpyHtoDAsync", len);

    return rc != 0 ? rc
                   : fl_cuda_status(fl_cuda.cuStreamSynchronize(stream), "cuStreamSynchronize", 0);
}

static int make(struct fl_gpu *gpu, struct fl_stage **out)
{
    static const struct fl_pin how = {.node = -1, .fork = FL_PIN_APART};
    struct fl_stage *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return fl_gpu_fail(-ENOMEM, "no memory for a record");
    }
    int rc =
        fl_pinned_take(&s->host, gpu, (size_t)LARGE * LONG + (size_t)SMALL * SHORT, &how, true);
    if (rc != 0) {
        free(s);
        return rc;
    }
    fl_lock_init(&s->lock, FL_RANK_RUNTIME);
    s->track = (struct fl_gpu_track){
        .kind = FL_GPU_TRACK_COPIES, .device = gpu->ordinal, .target = FL_GPU_PINNED, .owner = s};
    atomic_store_explicit(&s->track.pinned_bytes, s->host.range.len, memory_order_relaxed);
    fl_gpu_track_open(&s->track);
    *out = s;
    return 0;
}

static int stage_of(struct fl_gpu *gpu, struct fl_stage **out)
{
    int rc = 0;

    *out = atomic_load_explicit(&gpu->stage, memory_order_acquire);
    if (*out != NULL) {
        return 0;
    }
    fl_lock_acquire(&making);
    *out = atomic_load_explicit(&gpu->stage, memory_order_relaxed);
    if (*out == NULL) {
        rc = make(gpu, out);
        if (rc == 0) { /* pairs with the acquire above */
            atomic_store_explicit(&gpu->stage, *out, memory_order_release);
        }
    }
    fl_lock_release(&making);
    return rc;
}

static int stage_all(struct fl_gpu *gpu, uint64_t to, const char *from, size_t len,
                     fl_CUstream stream)
{
    struct fl_stage *s;
    int rc = fl_gpu_refuse_capture(stream);

    rc = rc == 0 ? stage_of(gpu, &s) : rc;
    if (rc == 0 && s->host.chunk == 0) {
        return copy_plainly(to, from, len, stream);
    }
    for (size_t done = 0, part; done < len && rc == 0; done += part) {
        part = fl_min(len - done, LONG);
        rc = stage_piece(s, to + done, from + done, part, stream);
    }
    return rc;
}

int fl_gpu_stage(struct fl_gpu *gpu, uint64_t to, const void *from, size_t len, void *stream)
{
    struct fl_gpu_guard guard;

    if (gpu == NULL || (len != 0 && (to == 0 || from == NULL))) {
        return fl_gpu_fail(-EINVAL, "stage: no device, or nothing to copy from or to");
    }
    int rc = fl_gpu_enter(gpu, &guard);
    if (rc == 0) {
        rc = len != 0 ? stage_all(gpu, to, from, len, stream) : 0;
        fl_gpu_leave(&guard);
    }
    return rc;
}

void fl_stage_end(struct fl_gpu *gpu)
{
    struct fl_stage *s = atomic_load_explicit(&gpu->stage, memory_order_acquire);
    struct fl_gpu_guard guard;

    if (s == NULL) {
        return;
    }
    fl_gpu_track_close(&s->track);
    if (fl_gpu_enter(gpu, &guard) == 0) {
        bool done = true;
        for (size_t i = 0; i < LARGE + SMALL; i++) {
            struct buffer *b = i < LARGE ? &s->large[i] : &s->small[i - LARGE];
            done = b->state != BUFFER_LOST && (b->state != BUFFER_SENT || await(s, b) == 0) && done;
            if (b->event != NULL) {
                (void)fl_cuda.cuEventDestroy(b->event);
            }
        }
        if (done) { /* else it stays as it is, and is lost */
            (void)fl_pinned_give(&s->host);
        }
        fl_gpu_leave(&guard);
    }
    atomic_store_explicit(&gpu->stage, NULL, memory_order_relaxed);
    free(s);
}
