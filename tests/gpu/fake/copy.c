/* What is submitted: copies, fills, kernels; and what it does when it runs. */
#include "gpu/fake/internal.h"

#include <stdlib.h>
#include <string.h>

/* One side of an operation, as memory: of a device, or of the host. */
static char *bytes_at(uint64_t address, bool device, size_t *out_len)
{
    if (device) {
        return fake_bytes(address, out_len);
    }
    *out_len = SIZE_MAX;
    return (char *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

void fake_execute(const struct fake_op *op)
{
    size_t at = 0;

    if (op->kind == FAKE_OP_MARK) {
        return;
    }
    if (!op->to_device) {
        fake_check_pages(op->to, op->len);
    }
    if (op->kind == FAKE_OP_COPY && op->snapshot == NULL && !op->from_device) {
        fake_check_pages(op->from, op->len);
    }
    while (at < op->len) {
        size_t to_len, from_len = SIZE_MAX, n = op->len - at;
        char *to = bytes_at(op->to + at, op->to_device, &to_len), *from = NULL;
        if (op->kind == FAKE_OP_COPY) {
            from = op->snapshot != NULL ? (char *)op->snapshot + at
                                        : bytes_at(op->from + at, op->from_device, &from_len);
        }
        if (to == NULL || (op->kind == FAKE_OP_COPY && from == NULL)) {
            fake_violation("what was submitted goes to memory that is not there any more");
            return;
        }
        n = n < to_len ? n : to_len;
        n = n < from_len ? n : from_len;
        if (op->kind == FAKE_OP_COPY) {
            memmove(to, from, n);
        } else {
            memset(to, op->value, n);
        }
        at += n;
    }
}

/* Tells an operation's accesses, so many bytes of either side, and queues it. */
static fl_CUresult submit(struct fake_stream *s, struct fake_op *op, size_t reads, size_t writes)
{
    bool nothing = op->kind == FAKE_OP_COPY && op->len == 0;
    bool implicit = !nothing && fake_stream_is_implicit(s);
    if (s->capturing || nothing || implicit) {
        free(op->snapshot);
        return implicit ? FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : FL_CUDA_SUCCESS;
    }
    fake_submit_order(s);
    if (reads > 0) {
        fake_access(s->component, &s->clock, op->from, reads, false);
    }
    if (writes > 0) {
        fake_access(s->component, &s->clock, op->to, writes, true);
    }
    fake_submit(s, op);
    return FL_CUDA_SUCCESS;
}

/* Either side is a device's or the host's. What is pageable is read before the call returns, or is
 * there when it does. */
static fl_CUresult copy(uint64_t to, bool to_device, uint64_t from, bool from_device, size_t len,
                        struct fake_stream *s)
{
    struct fake_op op = {.kind = FAKE_OP_COPY,
                         .to = to,
                         .from = from,
                         .len = len,
                         .to_device = to_device,
                         .from_device = from_device};
    bool across = false, both = to_device && from_device;
    bool pinned = both || fake_registered_at(to_device ? from : to, len, &across) != NULL;

    if (s == NULL) {
        return FL_CUDA_ERROR_INVALID_HANDLE;
    }
    if (across || !(to_device || from_device) || (to_device && !fake_is_allocated(to, len)) ||
        (from_device && !fake_is_allocated(from, len))) {
        return FL_CUDA_ERROR_INVALID_VALUE;
    }
    fake_figures.copies++;
    fake_figures.pageable_copies += !pinned;
    if (!pinned && to_device) {
        op.snapshot = fake_zalloc(len + 1);
        memcpy(op.snapshot, (const void *)(uintptr_t)from, len); /* NOLINT */
    }
    fl_CUresult code =
        submit(s, &op, from_device || pinned ? len : 0, to_device || pinned ? len : 0);
    if (!pinned && from_device) {
        fake_host_joins(s);
    }
    return code;
}

FAKE_CALL(cuMemcpyHtoDAsync, FAKE_CONTEXT,
          (fl_CUdeviceptr to, const void *from, size_t len, fl_CUstream stream),
          copy(to, true, (uintptr_t)from, false, len, fake_stream_of(stream)), )

FAKE_CALL(cuMemcpyDtoHAsync, FAKE_CONTEXT,
          (void *to, fl_CUdeviceptr from, size_t len, fl_CUstream stream),
          copy((uintptr_t)to, false, from, true, len, fake_stream_of(stream)), )

FAKE_CALL(cuMemcpyDtoDAsync, FAKE_CONTEXT,
          (fl_CUdeviceptr to, fl_CUdeviceptr from, size_t len, fl_CUstream stream),
          copy(to, true, from, true, len, fake_stream_of(stream)), )

fl_CUresult fake_cuMemcpyBatchAsync(fl_CUdeviceptr *to, fl_CUdeviceptr *from, size_t *len,
                                    size_t count, struct fl_CUmemcpyAttributes *attribute,
                                    size_t *attribute_index, size_t attributes, size_t *failed,
                                    fl_CUstream stream)
{
    FAKE_ENTER(cuMemcpyBatchAsync, FAKE_CONTEXT);
    fl_CUresult code = FL_CUDA_SUCCESS;

    if (failed != NULL) {
        *failed = SIZE_MAX;
    }
    if ((uintptr_t)stream <= 1 || count == 0 || attributes == 0 || attributes > count ||
        attribute_index[0] != 0 ||
        attribute[0].srcAccessOrder != FL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    struct fake_stream *s = fake_stream_of(stream);
    for (size_t i = 0; i < count && code == FL_CUDA_SUCCESS; i++) {
        code = copy(to[i], fake_is_device(to[i]), from[i], fake_is_device(from[i]), len[i], s);
        if (code != FL_CUDA_SUCCESS && failed != NULL) {
            *failed = i;
        }
    }
    return fake_leave(code);
}

static fl_CUresult fill(uint64_t read, size_t read_len, uint64_t write, size_t write_len,
                        unsigned char value, struct fake_stream *s)
{
    struct fake_op op = {.kind = write_len > 0 ? FAKE_OP_FILL : FAKE_OP_MARK,
                         .from = read,
                         .to = write,
                         .len = write_len,
                         .value = value,
                         .to_device = true};

    if (s == NULL) {
        return FL_CUDA_ERROR_INVALID_HANDLE;
    }
    if (!fake_is_allocated(read, read_len) || !fake_is_allocated(write, write_len)) {
        return FL_CUDA_ERROR_INVALID_VALUE;
    }
    return submit(s, &op, read_len, write_len);
}

FAKE_CALL(cuMemsetD8Async, FAKE_CONTEXT,
          (fl_CUdeviceptr address, unsigned char value, size_t count, fl_CUstream stream),
          fill(0, 0, address, count, value, fake_stream_of(stream)), )

int fake_kernel(void *stream, uint64_t read, size_t read_len, uint64_t write, size_t write_len,
                unsigned char value)
{
    return fill(read, read_len, write, write_len, value, fake_stream_of(stream));
}

void fake_host_access(const void *p, size_t len, bool write)
{
    fake_access(FAKE_HOST, &fake_host, (uintptr_t)p, len, write);
}

bool fake_holds(uint64_t address, size_t len, unsigned char value)
{
    size_t at = 0, piece;

    fake_run_all();
    while (at < len) {
        const char *b = fake_bytes(address + at, &piece);
        if (b == NULL) {
            return false;
        }
        piece = piece < len - at ? piece : len - at;
        for (size_t i = 0; i < piece; i++) {
            if ((unsigned char)b[i] != value) {
                return false;
            }
        }
        at += piece;
    }
    return true;
}
