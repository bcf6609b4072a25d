/* Pinned host memory. See host.h. */
#include "gpu/host/host.h"

#include "gpu/driver/driver.h"
#include "gpu/trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct fl_pinned nothing;

/* The kernel's side of one registration is one table, 16 bytes a base page: drivers refuse 512 GiB
 * at once. */
size_t fl_pinned_chunk = (size_t)64 << 30;

_Atomic uint32_t fl_pinned_forks;

void fl_pinned_fork_child(void)
{
    atomic_fetch_add_explicit(&fl_pinned_forks, 1, memory_order_relaxed);
}

/* Where there is one node, the kernel is not told of it. */
static bool has_nodes(void)
{
    char text[64];

    return fl_sys.read_file("/sys/devices/system/node/online", text, sizeof text) == 0 &&
           strpbrk(text, ",-") != NULL;
}

static uint64_t kib_after(const char *text, const char *key)
{
    uint64_t v = 0;

    (void)fl_parse_after(text, key, &v);
    return v;
}

/* Bytes that the node could have free: what files have in memory gives way. UINT64_MAX: unknown. */
static uint64_t available_on(int node)
{
    char path[64], text[4096];
    struct fl_text t = fl_text_on(path, sizeof path);

    fl_text_str(&t, "/sys/devices/system/node/node");
    fl_text_u64(&t, (uint64_t)node);
    fl_text_str(&t, "/meminfo");
    if (fl_sys.read_file(path, text, sizeof text) != 0) {
        return UINT64_MAX;
    }
    return FL_KIB * (kib_after(text, "MemFree:") + kib_after(text, "Active(file):") +
                     kib_after(text, "Inactive(file):"));
}

/* Pages that cannot be reclaimed: half of what there is stays. */
static bool is_too_much(size_t len)
{
    struct fl_memory_scratch *scratch = calloc(1, sizeof *scratch);
    struct fl_memory m = {.headroom = 0};

    if (scratch == NULL) {
        return true;
    }
    fl_memory_look(&m, scratch);
    free(scratch);
    return len > m.headroom / 2;
}

static int map_own(struct fl_pinned *p, size_t len, const struct fl_pin *how)
{
    bool huge = fl_page.thp;
    int rc = is_too_much(len) ? -ENOMEM
                              : fl_vspace_claim(&p->map, len, fl_page.huge, 0, "faultless:pinned");

    if (rc != 0) {
        return -ENOMEM;
    }
    rc = fl_vspace_commit(&p->map, p->map.all, huge);
    rc = rc == 0 ? fl_pin_prepare(p->map.all, how, huge, false) : rc;
    if (rc != 0) {
        fl_vspace_release(&p->map);
        return -ENOMEM;
    }
    p->range = p->map.all;
    return 0;
}

static int take_host(struct fl_pinned *p, size_t len, const struct fl_pin *how)
{
    struct fl_region *r = fl_gpu_region();
    struct fl_pin at = *how;

    at.node = has_nodes() ? how->node : -1;
    if (at.node >= 0 && len > available_on(at.node) / 2) {
        return -ENOMEM;
    }
    if (r == NULL) {
        return map_own(p, len, &at);
    }
    int rc = fl_region_take_pinned(r, len, &at, &p->extent);
    if (rc == 0) {
        p->range = (struct fl_range){p->extent->base, p->extent->len};
    }
    return rc;
}

static void give_host(struct fl_pinned *p)
{
    fl_assert(p->range.len != 0);
    if (p->borrowed) {
        /* its lender's */
    } else if (p->extent != NULL) {
        fl_region_give_pinned(fl_gpu_host.region, p->extent);
    } else {
        fl_vspace_release(&p->map);
    }
    *p = nothing;
}

static size_t piece_at(const struct fl_pinned *p, size_t done, size_t chunk)
{
    return fl_min(chunk, p->range.len - done);
}

static void *at(const struct fl_pinned *p, size_t offset)
{
    return (void *)(p->range.base + offset); /* NOLINT(performance-no-int-to-ptr) */
}

/* Goes on after a refusal; the first one is told. What is unregistered already is so. */
static int unregister(const struct fl_pinned *p, size_t upto, size_t chunk)
{
    int first = 0;

    fl_assert(chunk != 0 && upto <= p->range.len);
    for (size_t done = 0; done < upto; done += chunk) {
        uint64_t start = fl_timeline_now();
        fl_CUresult code = fl_cuda.cuMemHostUnregister(at(p, done));
        fl_gpu_note_call(FL_TIMELINE_GPU_PIN, start, piece_at(p, done, chunk));
        if (code != FL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED && first == 0) {
            first = fl_cuda_status(code, "cuMemHostUnregister", piece_at(p, done, chunk));
        }
    }
    return first;
}

static int enlist(struct fl_pinned *p)
{
    size_t chunk = fl_pinned_chunk;
    int rc = 0;

    fl_assert(chunk != 0 && p->range.len != 0);
    for (size_t done = 0; done < p->range.len && rc == 0; done += chunk) {
        size_t len = piece_at(p, done, chunk);
        uint64_t start = fl_timeline_now();
        fl_CUresult code =
            fl_cuda.cuMemHostRegister(at(p, done), len, FL_CU_MEMHOSTREGISTER_PORTABLE);
        fl_gpu_note_call(FL_TIMELINE_GPU_PIN, start, len);
        rc = fl_cuda_status(code, "cuMemHostRegister", len);
        if (rc != 0 && unregister(p, done, chunk) != 0) {
            *p = nothing; /* its pages are pinned still: they are left alone */
            return rc;
        }
    }
    p->chunk = rc == 0 ? chunk : 0;
    return rc;
}

int fl_pinned_take(struct fl_pinned *p, const struct fl_gpu *gpu, size_t len,
                   const struct fl_pin *how, bool bare_too)
{
    struct fl_pin pin = *how;

    *p = (struct fl_pinned){.forks = atomic_load_explicit(&fl_pinned_forks, memory_order_relaxed)};
    if (len == 0 || len > SIZE_MAX / 2) {
        return fl_gpu_fail(-ENOMEM, "pinned memory: no such size");
    }
    if (pin.node < 0 && gpu != NULL) {
        pin.node = gpu->node;
    }
    if (take_host(p, fl_align_up(len, fl_page.huge), &pin) != 0) {
        return fl_gpu_fail(-ENOMEM, "pinned memory: more than the host has to give");
    }
    fl_assert(p->range.len >= len && p->range.base % fl_page.huge == 0);
    int rc = gpu != NULL ? enlist(p) : 0;
    if (rc == 0 || (bare_too && p->range.len != 0)) {
        return 0;
    }
    if (p->range.len != 0) {
        give_host(p);
    }
    return rc;
}

int fl_pinned_borrow(struct fl_pinned *p, struct fl_range range, const struct fl_gpu *gpu)
{
    fl_assert(range.len != 0 && (range.base | range.len) % fl_page.base == 0);
    *p = (struct fl_pinned){.range = range,
                            .borrowed = true,
                            .forks = atomic_load_explicit(&fl_pinned_forks, memory_order_relaxed)};
    return gpu != NULL ? enlist(p) : 0;
}

int fl_pinned_give(struct fl_pinned *p)
{
    if (p->range.len == 0) {
        return 0;
    }
    if (fl_pinned_is_parents(p)) {
        return fl_gpu_fail(-ECHILD, "a fork's child: pinned memory is its parent's");
    }
    int rc = p->chunk != 0 ? unregister(p, p->range.len, p->chunk) : 0;
    if (rc != 0) {
        *p = nothing;
        return rc;
    }
    give_host(p);
    return 0;
}
