/* Which of a mirror's copies may be under way: for each slot, and for the rest of it, the streams
 * that copied and an event on each. No lock is held over the driver: a mark that a thread records
 * is busy, and only threads that name the same stream record the same mark at once, which is in
 * order there. The threads' own streams have one handle: they are told apart by their threads. */
#include "gpu/mirror/mirror.h"
#include "gpu/pool/pool.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t thread_of(fl_CUstream stream)
{
    return (uintptr_t)stream == FL_STREAM_PER_THREAD ? fl_stream_thread() : 0;
}

/* The mark of `stream`, else an idle one; busy for the caller. NULL: make one. Lock: held. */
static struct fl_mirror_mark *claim(struct fl_mirror_marks *all, fl_CUstream stream)
{
    struct fl_mirror_mark *idle = NULL, *k = all->first;
    uint64_t thread = thread_of(stream);

    fl_assert(fl_lock_is_held(FL_RANK_RUNTIME, 1));
    for (;
         k != NULL && (k->stream != stream || k->thread != thread || !(k->pushed || k->busy != 0));
         k = k->next) {
        idle = k->pushed || k->busy != 0 ? idle : k;
    }
    k = k != NULL ? k : idle;
    if (k != NULL) {
        k->stream = stream;
        k->thread = thread;
        k->busy++;
    }
    return k;
}

static struct fl_mirror_mark *make(struct fl_gpu_mirror *m, struct fl_mirror_marks *all,
                                   fl_CUstream stream, int *rc)
{
    struct fl_mirror_mark *k = calloc(1, sizeof *k);

    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (k == NULL) {
        *rc = fl_gpu_fail(-ENOMEM, "no memory for a record");
        return NULL;
    }
    *rc = fl_cuda_status(fl_cuda.cuEventCreate(&k->event, FL_CU_EVENT_DISABLE_TIMING),
                         "cuEventCreate", 0);
    if (*rc != 0) {
        free(k);
        return NULL;
    }
    k->stream = stream;
    k->thread = thread_of(stream);
    k->busy = 1;
    fl_lock_acquire(&m->lock);
    k->next = all->first;
    all->first = k;
    fl_lock_release(&m->lock);
    return k;
}

static int put(struct fl_gpu_mirror *m, struct fl_mirror_marks *all, fl_CUstream stream)
{
    int rc = 0;

    fl_lock_acquire(&m->lock);
    struct fl_mirror_mark *k = claim(all, stream);
    bool again = k != NULL && k->pushed;
    fl_lock_release(&m->lock);
    k = k != NULL ? k : make(m, all, stream, &rc);
    if (k == NULL) {
        return rc;
    }
    if (again) { /* the handle may be another stream's by now: what it covers stays covered */
        rc = fl_cuda_status(fl_cuda.cuStreamWaitEvent(stream, k->event, 0), "cuStreamWaitEvent", 0);
    }
    if (rc == 0) {
        rc = fl_cuda_status(fl_cuda.cuEventRecord(k->event, stream), "cuEventRecord", 0);
    }
    fl_lock_acquire(&m->lock);
    fl_assert(k->busy != 0);
    k->busy--;
    k->pushed = k->pushed || rc == 0;
    k->times += rc == 0;
    fl_lock_release(&m->lock);
    return rc;
}

int fl_mark_put(struct fl_gpu_mirror *m, struct fl_mirror_marks *all, fl_CUstream stream)
{
    int rc = put(m, all, stream);

    /* No event would say when it is done. */
    if (rc != 0 && fl_cuda.cuStreamSynchronize(stream) != FL_CUDA_SUCCESS) {
        atomic_store_explicit(&m->is_lost, true, memory_order_relaxed);
    }
    return rc;
}

static int await(struct fl_gpu_mirror *m, struct fl_mirror_mark *k, uint64_t times)
{
    fl_CUresult code = fl_cuda.cuEventQuery(k->event);

    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (code == FL_CUDA_ERROR_NOT_READY) {
        uint64_t began = fl_sys.now_ns();
        code = fl_cuda.cuEventSynchronize(k->event);
        fl_gpu_note_stall(&m->track, began);
    }
    int rc = fl_cuda_status(code, "cuEventSynchronize", 0);
    if (rc == 0) {
        fl_lock_acquire(&m->lock);
        k->pushed = k->pushed && (k->times != times || k->busy != 0);
        fl_lock_release(&m->lock);
    }
    return rc;
}

int fl_mark_await(struct fl_gpu_mirror *m, struct fl_mirror_marks *all)
{
    int rc = 0;

    fl_lock_acquire(&m->lock);
    for (struct fl_mirror_mark *k = all->first; k != NULL && rc == 0; k = k->next) {
        uint64_t times = k->times;
        if (k->pushed) {
            fl_lock_release(&m->lock);
            rc = await(m, k, times);
            fl_lock_acquire(&m->lock);
        }
    }
    fl_lock_release(&m->lock);
    return rc;
}

void fl_marks_end(struct fl_mirror_marks *all, bool driver)
{
    for (struct fl_mirror_mark *k = all->first, *next; k != NULL; k = next) {
        next = k->next;
        fl_assert(k->busy == 0);
        if (driver) {
            (void)fl_cuda.cuEventDestroy(k->event);
        }
        free(k);
    }
    all->first = NULL;
}
