#include "gpu/mirror_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fl_region mirror_region;

void mirror_main(const char *test)
{
    static const struct fl_region_config config = {.huge = true};
    struct fl_region *r = NULL;

    fl_sys_boot();
    if (getenv("FL_TEST_REGION") != NULL) {
        if (fl_region_start(&mirror_region, &config) != 0) {
            printf("%s: no region\n", test);
            exit(1);
        }
        r = &mirror_region;
    }
    gpu_main(test, r);
}

struct fl_gpu_mirror_options mirror_options(struct fl_gpu_slot *slot, size_t count)
{
    struct fl_gpu_mirror_options o;

    fl_gpu_mirror_defaults(&o);
    o.slot = slot;
    o.count = count;
    return o;
}

struct fl_gpu_mirror *mirror_of(const struct fl_gpu_mirror_options *o)
{
    struct fl_gpu_mirror *m = NULL;

    assert_ok(fl_gpu_mirror_create(gpu, o, &m));
    assert_non_null(m);
    assert_true(fl_gpu_mirror_map(m)->delta != 0);
    return m;
}

struct fl_gpu_mirror *mirror_of_blocks(struct fl_gpu_slot *slot, size_t count)
{
    struct fl_gpu_mirror_options o = mirror_options(slot, count);

    return mirror_of(&o);
}

struct fl_gpu_mirror *mirror_of_input(size_t size, unsigned inputs)
{
    struct fl_gpu_slot slot[] = {{.size = size, .input = true}, {.size = size}};
    struct fl_gpu_mirror_options o = mirror_options(slot, 2);

    o.inputs = inputs;
    return mirror_of(&o);
}

void *mirror_begin(struct fl_gpu_mirror *m)
{
    void *base = NULL;

    assert_ok(fl_gpu_mirror_begin(m, &base));
    return base;
}

void mirror_end(struct fl_gpu_mirror *m)
{
    assert_ok(fl_gpu_mirror_destroy(m));
    if (fake != NULL) {
        assert_int_equal(fake->registered(), 0);
        assert_int_equal(fake->used(0), 0);
    }
    if (mirror_region.space.window.all.len != 0) {
        assert_int_equal(mirror_region.held.pinned, 0);
        assert_null(fl_region_check(&mirror_region));
    }
}

void mirror_write(void *p, size_t len, unsigned char value)
{
    if (fake != NULL) {
        fake->host_access(p, len, true);
    }
    memset(p, value, len);
}

void *mirror_host(const struct fl_gpu_mirror *m, size_t offset)
{
    return (char *)fl_gpu_mirror_map(m)->host + offset;
}

uint64_t mirror_twin(const struct fl_gpu_mirror *m, size_t offset)
{
    return fl_gpu_twin(fl_gpu_mirror_map(m), mirror_host(m, offset));
}

bool all_are(const void *p, size_t len, unsigned char value)
{
    const unsigned char *b = p;

    for (size_t i = 0; i < len; i++) {
        if (b[i] != value) {
            return false;
        }
    }
    return true;
}
