/* A program with a mirror, and whatever else may have a hand on its pages. Without a device
 * io_uring's registered buffers stand for one: they too hold pages by their physical addresses, and
 * a fixed read writes to these, whatever the page tables say. */
#include "mirror.h"
#include "smaps.h"

#if VICTIM_URING
#include <liburing.h>
#endif

/* ---- what the kernel says of the range ---- */

enum { PAGE = 4096, FRAMES_MOST = 4096 };

struct frames {
    uint64_t of[FRAMES_MOST];
    size_t n;
};

/* All zero for who may not know. */
static void look_at_frames(const char *p, size_t len, struct frames *out)
{
    int fd = open("/proc/self/pagemap", O_RDONLY);

    out->n = len / PAGE < FRAMES_MOST ? len / PAGE : FRAMES_MOST;
    CHECK(fd >= 0);
    CHECK(pread(fd, out->of, out->n * 8, (off_t)((uintptr_t)p / PAGE * 8)) ==
          (ssize_t)(out->n * 8));
    close(fd);
    for (size_t i = 0; i < out->n; i++) {
        CHECK((out->of[i] >> 63) == 1); /* present */
        out->of[i] &= ((uint64_t)1 << 55) - 1;
    }
}

/* kB in huge pages of the maps that `p` lies in and begins. */
static long huge_kb(const char *p, size_t len)
{
    long sum = 0;

    for (struct map m = {.file = NULL}; next_map(&m);) {
        if (m.from >= (uintptr_t)p && m.to <= (uintptr_t)p + len) {
            sum += (long)m.huge_kib;
        }
    }
    return sum;
}

/* ---- a device ---- */

static int has_device;

#if VICTIM_URING
static struct io_uring ring;

static void register_with_device(char *p, size_t len)
{
    const struct iovec v = {p, len};

    has_device =
        io_uring_queue_init(8, &ring, 0) == 0 && io_uring_register_buffers(&ring, &v, 1) == 0;
}

static void device_writes(char *to, size_t len, int fd)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    struct io_uring_cqe *cqe;

    io_uring_prep_read_fixed(sqe, fd, to, (unsigned)len, 0, 0);
    CHECK(io_uring_submit(&ring) == 1);
    CHECK(io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->res == (int)len);
    io_uring_cqe_seen(&ring, cqe);
}

static void unregister(void)
{
    if (has_device) {
        CHECK(io_uring_unregister_buffers(&ring) == 0);
    }
    has_device = 0;
}
#else
static void register_with_device(char *p, size_t len)
{
    (void)p;
    (void)len;
}

static void device_writes(char *to, size_t len, int fd)
{
    (void)to;
    (void)len;
    (void)fd;
}

static void unregister(void)
{
}
#endif

static int file_with(size_t n, unsigned char value)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    char *p = malloc(n);

    CHECK(fd >= 0 && p != NULL);
    memset(p, value, n);
    CHECK(write(fd, p, n) == (ssize_t)n);
    free(p);
    return fd;
}

/* What the device writes the program reads: they have the same pages still. */
static int has_devices_pages(char *p, size_t len, unsigned char value)
{
    int fd = has_device ? file_with(len, value) : -1, same = 1;

    if (has_device) {
        memset(p, (unsigned char)~value, len);
        device_writes(p, len, fd);
        close(fd);
    }
    for (size_t i = 0; has_device && i < len && same; i += 512) {
        same = (unsigned char)p[i] == value;
    }
    return same;
}

/* ---- mirrors ---- */

static struct fl_gpu_mirror *mirror_of(struct fl_gpu *gpu, size_t len, enum fl_gpu_fork how)
{
    struct fl_gpu_slot slot = {.size = len, .input = true};
    struct fl_gpu_mirror_options o;
    struct fl_gpu_mirror *m = NULL;

    CALL(fl_gpu_mirror_defaults)(&o);
    o.slot = &slot;
    o.count = o.inputs = 1;
    o.fork = how;
    CHECK(CALL(fl_gpu_mirror_create)(gpu, &o, &m) == 0);
    return m;
}

static char *host_of(struct fl_gpu_mirror *m)
{
    return (char *)CALL(fl_gpu_mirror_map)(m)->host;
}

static void refused(char *p, size_t len)
{
    static const int takes[] = {MADV_DONTNEED, MADV_FREE, MADV_PAGEOUT, MADV_REMOVE};

    for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++) {
        errno = 0;
        CHECK(madvise(p + PAGE, PAGE, takes[i]) == -1 && errno == EBUSY);
        CHECK(madvise(p, len, takes[i]) == -1 && errno == EBUSY);
    }
    CHECK(munmap(p, PAGE) == -1 && errno == EBUSY);
    CHECK(mremap(p, len, 2 * len, MREMAP_MAYMOVE) == MAP_FAILED && errno == EBUSY);
    CHECK(mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED &&
          errno == EBUSY);
    CHECK(madvise(p, len, MADV_DOFORK) == 0); /* libibverbs says so when it is done */
    CHECK(madvise(p, len, MADV_HUGEPAGE) == 0);
}

MODE(guarded)
{
    static struct frames before, after;
    const size_t len = 4 * MIB;
    struct fl_gpu_mirror *m = mirror_of(NULL, len, FL_GPU_FORK_NONE);
    char *p = host_of(m);
    void *base = NULL;

    CHECK(fl_gpu_twin(CALL(fl_gpu_mirror_map)(m), p) == 0);
    CHECK(CALL(fl_gpu_mirror_begin)(m, &base) == 0 && base == p);
    CHECK(CALL(fl_gpu_mirror_push)(m, NULL) == -ENODEV);
    register_with_device(p, len);
    memset(p, 0x5a, len);
    look_at_frames(p, len, &before);
    long huge = huge_kb(p, len);
    CHECK(has_devices_pages(p, len, 1));
    memset(p, 0x5a, len);
    refused(p, len);
    storm();
    for (size_t i = 0; i < len; i++) {
        CHECK(p[i] == 0x5a);
    }
    look_at_frames(p, len, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK(huge_kb(p, len) == huge);
    CHECK(has_devices_pages(p, len, 2));
    unregister();
    CHECK(CALL(fl_gpu_mirror_destroy)(m) == 0);
    CHECK(madvise(p, PAGE, MADV_FREE) == 0 || errno == ENOMEM); /* it is in no block any more */
    storm();
    printf("device %d huge %ld\n", before.n != 0 && VICTIM_URING, huge);
}

/* That it would be seen: what the kernel does when it is not refused. */
MODE(planted)
{
    const size_t len = 4 * MIB;
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    memset(p, 1, len);
    register_with_device(p, len);
    int device = has_device;
    CHECK(has_devices_pages(p, len, 1));
    CHECK(madvise(p, len, MADV_DONTNEED) == 0);
    printf("device %d same %d\n", device, has_devices_pages(p, len, 2));
}

static void touch(char *p)
{
    *(volatile char *)p = 1;
}

static void read_zero(char *p)
{
    CHECK(p[0] == 0 && p[PAGE] == 0);
}

static void read_copy(char *p)
{
    CHECK(p[0] == 0x33 && p[PAGE] == 0x33);
}

static struct fl_gpu_mirror *parents;

static void call_it(char *p)
{
    void *base;

    CHECK(CALL(fl_gpu_mirror_begin)(parents, &base) == -ECHILD);
    CHECK(CALL(fl_gpu_mirror_push)(parents, NULL) == -ECHILD);
    CHECK(CALL(fl_gpu_mirror_push_range)(parents, p, 1, NULL) == -ECHILD);
    CHECK(CALL(fl_gpu_mirror_read)(parents, 0, 0, p, 1, NULL) == -ECHILD);
    CHECK(CALL(fl_gpu_mirror_destroy)(parents) == -ECHILD);
    storm();
    struct fl_gpu_mirror *own = mirror_of(NULL, 4 * MIB, FL_GPU_FORK_NONE);
    memset(host_of(own), 7, 4 * MIB);
    CHECK(host_of(own) + 4 * MIB <= p || host_of(own) >= p + 4 * MIB);
    CHECK(CALL(fl_gpu_mirror_destroy)(own) == 0);
}

static void forked_as(enum fl_gpu_fork how, void (*reads)(char *), int outcome)
{
    const size_t len = 4 * MIB;
    struct fl_gpu_mirror *m = mirror_of(NULL, len, how);
    char *p = host_of(m);

    parents = m;
    memset(p, 0x33, len);
    if (how == FL_GPU_FORK_NONE) {
        register_with_device(p, len);
    }
    long huge = huge_kb(p, len);
    CHECK(ends_by(reads, p) == outcome);
    CHECK(ends_by(call_it, p) == 0);
    if (how == FL_GPU_FORK_NONE) { /* whole still, though it was pinned and written since */
        memset(p, 0x34, len);
        CHECK(huge_kb(p, len) == huge);
        CHECK(has_devices_pages(p, len, 0x77));
        unregister();
    }
    storm();
    CHECK(CALL(fl_gpu_mirror_destroy)(m) == 0);
}

MODE(forked)
{
    forked_as(FL_GPU_FORK_NONE, touch, SIGSEGV);
    forked_as(FL_GPU_FORK_WIPE, read_zero, 0);
    forked_as(FL_GPU_FORK_COPY, read_copy, 0);
}

MAIN()
