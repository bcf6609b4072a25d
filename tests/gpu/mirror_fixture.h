/* Mirrors for tests: made of a table of blocks, written to and read back. With FL_TEST_REGION in
 * the environment host memory is the region's, else maps of its own. */
#ifndef FL_TESTS_GPU_MIRROR_FIXTURE_H
#define FL_TESTS_GPU_MIRROR_FIXTURE_H

#include "gpu/gpu_fixture.h"
#include "gpu/mirror/mirror.h"
#include "gpu/host/host.h"

extern struct fl_region mirror_region;

/* gpu_main, with the region that the environment asks for. */
void mirror_main(const char *test);
#define MIRROR_MAIN(name)                                                                          \
    int main(void)                                                                                 \
    {                                                                                              \
        mirror_main(name);                                                                         \
        return RUN_CASES(GPU_CASES);                                                               \
    }
/* The defaults, and these blocks. */
struct fl_gpu_mirror_options mirror_options(struct fl_gpu_slot *slot, size_t count);
/* Made, or the test fails. */
struct fl_gpu_mirror *mirror_of(const struct fl_gpu_mirror_options *o);
struct fl_gpu_mirror *mirror_of_blocks(struct fl_gpu_slot *slot, size_t count);
/* Of one input, in so many slots; and behind them as much again. */
struct fl_gpu_mirror *mirror_of_input(size_t size, unsigned inputs);
/* The slot that it begins. */
void *mirror_begin(struct fl_gpu_mirror *m);
/* Destroyed, and nothing of it is left with the driver. */
void mirror_end(struct fl_gpu_mirror *m);
/* The host writes; told to the fake's clocks first. */
void mirror_write(void *p, size_t len, unsigned char value);
void *mirror_host(const struct fl_gpu_mirror *m, size_t offset);
uint64_t mirror_twin(const struct fl_gpu_mirror *m, size_t offset);
bool all_are(const void *p, size_t len, unsigned char value);
#define assert_ok(rc)                                                                              \
    do {                                                                                           \
        int status_ = (rc);                                                                        \
        if (status_ != 0) {                                                                        \
            fail_msg("%s: %d, %s", #rc, status_, fl_gpu_error());                                  \
        }                                                                                          \
    } while (0)

#endif
