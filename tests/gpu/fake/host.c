/* Pinned memory. The pages are pinned for real, through io_uring, where that may be: then fork and
 * madvise meet what they would meet under a driver. At each copy they are compared with those that
 * were registered.
 *
 * Sources: io_uring_register(2) IORING_REGISTER_BUFFERS,
 * Documentation/admin-guide/mm/pagemap.rst */
#include "gpu/fake/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, PIECE = 1 << 30 };
static const uint64_t FRAME = ((uint64_t)1 << 55) - 1, PRESENT = (uint64_t)1 << 63;

static struct fake_registration *all;

/* The pagemap entries of [lo, lo + len), which begins and ends with pages. */
static bool read_frames(uint64_t lo, size_t len, uint64_t *out)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t bytes = len / PAGE * sizeof *out, at = 0;
    ssize_t n = 1;

    while (fd >= 0 && at < bytes && n > 0) {
        n = pread(fd, (char *)out + at, bytes - at, (off_t)(lo / PAGE * sizeof *out + at));
        at += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return at == bytes;
}

/* A ring that holds the pages, or -1. */
static int pin(uint64_t base, size_t len)
{
    struct io_uring_params params;
    struct iovec *v;
    unsigned n = (unsigned)((len + PIECE - 1) / PIECE);
    int ring;

    memset(&params, 0, sizeof params);
    ring = (int)syscall(SYS_io_uring_setup, 1, &params);
    if (ring < 0) {
        return -1;
    }
    v = fake_zalloc(n * sizeof *v);
    for (unsigned i = 0; i < n; i++) {
        size_t at = (size_t)i * PIECE, left = len - at;
        v[i].iov_base = (char *)(uintptr_t)base + at; /* NOLINT(performance-no-int-to-ptr) */
        v[i].iov_len = left < PIECE ? left : PIECE;
    }
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, v, n) != 0) {
        close(ring);
        ring = -1;
    }
    free(v);
    return ring;
}

static void unpin(int ring)
{
    if (ring >= 0) {
        (void)syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
        close(ring);
    }
}

/* As a driver brings pages in: for writing. -EINVAL of madvise is an old kernel's, or means that
 * some may not be written: then each page's first byte goes through a pipe and back, which refuses
 * where the program would crash. */
static bool bring_in(uint64_t base, size_t len)
{
    char *p = (char *)(uintptr_t)base; /* NOLINT(performance-no-int-to-ptr) */
    int way[2];
    bool good = true;

    if (madvise(p, len, MADV_POPULATE_WRITE) == 0) {
        return true;
    }
    if (errno != EINVAL || pipe(way) != 0) {
        return false;
    }
    for (size_t at = 0; at < len && good; at += PAGE) {
        good = write(way[1], p + at, 1) == 1 && read(way[0], p + at, 1) == 1;
    }
    close(way[0]);
    close(way[1]);
    return good;
}

static fl_CUresult add(uint64_t address, size_t len, bool ours)
{
    struct fake_registration *r;
    uint64_t lo = address & ~(uint64_t)(PAGE - 1);
    size_t whole = (size_t)(((address + len + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - lo);

    for (r = all; r != NULL; r = r->next) {
        if (r->base < address + len && address < r->base + r->len) {
            return FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        }
    }
    if (!bring_in(lo, whole)) {
        return FL_CUDA_ERROR_INVALID_VALUE;
    }
    r = fake_zalloc(sizeof *r);
    r->base = address;
    r->len = len;
    r->ours = ours;
    r->ring = pin(lo, whole);
    r->frame = fake_zalloc(whole / PAGE * sizeof *r->frame);
    if (!read_frames(lo, whole, r->frame)) {
        free(r->frame);
        r->frame = NULL;
    }
    r->frames = r->frame != NULL && r->ring >= 0 && (r->frame[0] & FRAME) != 0;
    r->next = all;
    all = r;
    fake_figures.live++;
    fake_figures.registered += len;
    return FL_CUDA_SUCCESS;
}

static void drop(struct fake_registration **at)
{
    struct fake_registration *r = *at;

    *at = r->next;
    fake_figures.live--;
    fake_figures.registered -= r->len;
    unpin(r->ring);
    free(r->frame);
    if (r->ours) {
        munmap((void *)(uintptr_t)r->base, r->len); /* NOLINT(performance-no-int-to-ptr) */
    }
    free(r);
}

static struct fake_registration **at_base(const void *address)
{
    struct fake_registration **at = &all;

    while (*at != NULL && (*at)->base != (uintptr_t)address) {
        at = &(*at)->next;
    }
    return at;
}

struct fake_registration *fake_registered_at(uint64_t lo, size_t len, bool *out_across)
{
    struct fake_registration *r = all;

    *out_across = false;
    while (r != NULL && !(r->base < lo + (len > 0 ? len : 1) && lo < r->base + r->len)) {
        r = r->next;
    }
    if (r != NULL && (lo < r->base || lo + len > r->base + r->len)) {
        *out_across = true;
        r = NULL;
    }
    return r;
}

void fake_check_pages(uint64_t address, size_t len)
{
    bool across;
    const struct fake_registration *r = fake_registered_at(address, len, &across);
    uint64_t lo = address & ~(uint64_t)(PAGE - 1);
    size_t whole = (size_t)(((address + len + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - lo);
    uint64_t *now;

    if (r == NULL || r->frame == NULL) {
        return;
    }
    now = fake_zalloc(whole / PAGE * sizeof *now);
    if (read_frames(lo, whole, now)) {
        const uint64_t *was = r->frame + (lo - (r->base & ~(uint64_t)(PAGE - 1))) / PAGE;
        for (size_t i = 0; i < whole / PAGE; i++) {
            if ((now[i] & PRESENT) == 0 || (r->frames && (now[i] & FRAME) != (was[i] & FRAME))) {
                fake_violation("the page at %#llx is not the one that was registered",
                               (unsigned long long)(lo + i * PAGE));
                break;
            }
        }
    }
    free(now);
}

fl_CUresult fake_cuMemHostRegister(void *address, size_t len, unsigned flags)
{
    FAKE_ENTER(cuMemHostRegister, FAKE_CONTEXT | FAKE_NO_CAPTURE);
    if (address == NULL || len == 0 || flags > FL_CU_MEMHOSTREGISTER_PORTABLE) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    FAKE_REFUSE(len > fake_setting[FAKE_CUDA_REGISTER_MAX], FL_CUDA_ERROR_OUT_OF_MEMORY);
    return fake_leave(add((uintptr_t)address, len, false));
}

fl_CUresult fake_cuMemHostUnregister(void *address)
{
    FAKE_ENTER(cuMemHostUnregister, FAKE_CONTEXT | FAKE_NO_CAPTURE);
    struct fake_registration **at = at_base(address);

    if (*at == NULL || (*at)->ours) {
        fake_violation("cuMemHostUnregister of what is not registered");
        return fake_leave(FL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    }
    if (fake_is_queued((*at)->base, (*at)->len)) {
        fake_violation("cuMemHostUnregister amid a copy");
    }
    drop(at);
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemHostAlloc(void **address, size_t len, unsigned flags)
{
    FAKE_ENTER(cuMemHostAlloc, FAKE_CONTEXT | FAKE_NO_CAPTURE);
    void *p;
    fl_CUresult code;

    FAKE_REFUSE(len == 0 || flags > 7, FL_CUDA_ERROR_INVALID_VALUE);
    p = len > fake_setting[FAKE_CUDA_REGISTER_MAX]
            ? MAP_FAILED
            : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FAKE_REFUSE(p == MAP_FAILED, FL_CUDA_ERROR_OUT_OF_MEMORY);
    code = add((uintptr_t)p, len, true);
    if (code != FL_CUDA_SUCCESS) {
        munmap(p, len);
        return fake_leave(FL_CUDA_ERROR_OUT_OF_MEMORY);
    }
    *address = p;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemFreeHost(void *address)
{
    FAKE_ENTER(cuMemFreeHost, FAKE_CONTEXT | FAKE_NO_CAPTURE);
    struct fake_registration **at = at_base(address);

    if (*at == NULL || !(*at)->ours) {
        fake_violation("cuMemFreeHost of what cuMemHostAlloc did not give");
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    fake_figures.implicit_syncs++;
    fake_sync_device(-1);
    drop(at);
    return fake_leave(FL_CUDA_SUCCESS);
}

bool fake_knows_frames(void)
{
    static char page[2 * PAGE];
    uint64_t entry = 0, lo = ((uintptr_t)page + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    int ring;

    page[PAGE] = 1;
    ring = pin(lo, PAGE);
    bool known = ring >= 0 && read_frames(lo, PAGE, &entry) && (entry & FRAME) != 0;
    unpin(ring);
    return known;
}

void fake_host_reset(void)
{
    while (all != NULL) {
        drop(&all);
    }
}
