/* What a mirror has counted. */
#include "gpu/mirror/mirror.h"

#include <errno.h>
#include <string.h>

static uint64_t load(_Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

int fl_gpu_mirror_stats(struct fl_gpu_mirror *m, struct fl_gpu_mirror_stats *out)
{
    size_t size = out == NULL ? 0 : (size_t)out->size;

    if (m == NULL || size < sizeof out->size || size > sizeof *out) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_mirror_stats: no mirror, or size is not set");
    }
    struct fl_gpu_mirror_stats s = {
        .size = size,
        .copies = load(&m->track.copies),
        .copied_bytes = load(&m->track.copied_bytes),
        .stalls = load(&m->track.stalls),
        .stall_ns = load(&m->track.stall_ns),
    };
    memcpy(out, &s, size);
    return 0;
}
