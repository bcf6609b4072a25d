/* Each step reads a batch of a file into pinned memory, adds labels, stages all of it on the device
 * with one call, computes (here: a copy on the device), and brings the result back. Two input
 * slots: while one is copied the other is filled.
 *
 *   gpu_staging [FILE [STEPS]]     FILE: what the batches are read from; without it one is made
 * Without a device the host's side works alone, and the program says so. */
#include "driver.h"

#include <faultless/gpu.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { IMAGES, LABELS, WEIGHTS, RESULT, BLOCKS };

static const size_t batch = (size_t)3 << 20, labels = 4096; /* bytes of one step */

static struct fl_gpu_slot block[BLOCKS];

/* What is said of a call that failed, and the end. */
static int failed(const char *what, int rc)
{
    fprintf(stderr, "%s: %s (%s)\n", what, strerror(-rc), fl_gpu_error());
    return EXIT_FAILURE;
}

/* A file of eight batches, that has no name any more. */
static int make_file(void)
{
    char path[] = "/tmp/gpu-staging-XXXXXX";
    int fd = mkstemp(path);
    unsigned char *bytes = malloc(batch);

    if (fd >= 0) {
        unlink(path);
    }
    for (int i = 0; i < 8 && fd >= 0 && bytes != NULL; i++) {
        for (size_t at = 0; at < batch; at++) {
            bytes[at] = (unsigned char)(at * 31 + (size_t)i * 7);
        }
        if (write(fd, bytes, batch) != (ssize_t)batch) {
            close(fd);
            fd = -1;
        }
    }
    free(bytes);
    return fd;
}

static struct fl_gpu_mirror *make_mirror(struct fl_gpu *gpu)
{
    struct fl_gpu_mirror_options o;
    struct fl_gpu_mirror *m = NULL;

    block[IMAGES] = (struct fl_gpu_slot){.size = batch, .align = 4096, .input = true};
    block[LABELS] = (struct fl_gpu_slot){.size = labels, .input = true};
    block[WEIGHTS] = (struct fl_gpu_slot){.size = (size_t)1 << 20};
    block[RESULT] = (struct fl_gpu_slot){.size = batch};
    fl_gpu_mirror_defaults(&o);
    o.slot = block;
    o.count = BLOCKS;
    return fl_gpu_mirror_create(gpu, &o, &m) == 0 ? m : NULL;
}

/* 0: the step's result is what its input was. */
static int step(struct fl_gpu_mirror *m, const struct driver *d, CUstream stream, int fd, int i)
{
    const struct fl_gpu_mirror_map *map = fl_gpu_mirror_map(m);
    unsigned char *base, *images, *result = (unsigned char *)map->host + block[RESULT].offset;
    void *slot;
    int rc = fl_gpu_mirror_begin(m, &slot); /* waits until the slot's last push is through */

    if (rc != 0) {
        return rc;
    }
    base = slot;
    images = base + block[IMAGES].offset;
    memset(base + block[LABELS].offset, i, labels);
    if (pread(fd, images, batch, (off_t)batch * (i % 8)) != (ssize_t)batch) {
        return -EIO;
    }
    rc = fl_gpu_mirror_push(m, stream);
    if (rc == -ENODEV) { /* the host's side alone */
        memcpy(result, images, batch);
        return memcmp(result, images, batch) == 0 ? 0 : -EIO;
    }
    /* The kernels would stand here; their addresses are the twins of the host's. */
    if (rc == 0 &&
        d->copy(fl_gpu_twin(map, result), fl_gpu_twin(map, images), batch, stream) != 0) {
        rc = -EIO;
    }
    memset(result, 0, batch);
    rc = rc == 0 ? fl_gpu_mirror_pull_range(m, result, batch, stream) : rc;
    if (rc == 0 && d->stream_wait(stream) != 0) {
        rc = -EIO;
    }
    return rc != 0 || memcmp(result, images, batch) == 0 ? rc : -EILSEQ;
}

int main(int argc, char **argv)
{
    int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : make_file();
    int steps = argc > 2 ? atoi(argv[2]) : 10, rc = 0;
    struct fl_gpu_mirror_stats stats = {.size = sizeof stats};
    struct fl_gpu *gpu = NULL;
    struct driver d = {.retain = NULL};
    CUstream stream = NULL;

    if (fd < 0) {
        perror(argc > 1 ? argv[1] : "a file for the batches");
        return EXIT_FAILURE;
    }
    if (fl_gpu_open(0, &gpu) != 0) {
        printf("no device (%s): the host's side alone\n", fl_gpu_error());
    } else if (!driver_begin(&d, 0, &stream)) {
        return failed("the driver", -ENODEV);
    }
    struct fl_gpu_mirror *m = make_mirror(gpu);
    if (m == NULL) {
        return failed("fl_gpu_mirror_create", -ENOMEM);
    }
    const struct fl_gpu_mirror_map *map = fl_gpu_mirror_map(m);
    printf("mirror: %zu KiB, %s\n", map->len >> 10,
           map->delta != 0 ? "with a twin on the device" : "host alone");
    for (int i = 0; i < steps && rc == 0; i++) {
        rc = step(m, &d, stream, fd, i);
    }
    if (rc != 0) {
        return failed("a step", rc);
    }
    printf("%d steps staged and verified, %zu KiB each\n", steps, (batch + labels) >> 10);
    rc = fl_gpu_mirror_stats(m, &stats);
    if (rc != 0) {
        return failed("fl_gpu_mirror_stats", rc);
    }
    printf("%" PRIu64 " copies, %" PRIu64 " KiB; %" PRIu64 " times a slot was waited for\n",
           stats.copies, stats.copied_bytes >> 10, stats.stalls);
    rc = fl_gpu_mirror_destroy(m);
    close(fd);
    return rc != 0 ? failed("fl_gpu_mirror_destroy", rc) : EXIT_SUCCESS;
}
