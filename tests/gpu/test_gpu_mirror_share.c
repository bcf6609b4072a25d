/* The device side of a mirror, had by other devices and by other processes. */
#include "gpu/mirror_fixture.h"

#include <errno.h>
#include <unistd.h>

/* Another device has what there is, and what it grows by. */
static void peers_have_it_as_it_grows(void **state)
{
    struct fl_gpu_slot slot[] = {{.size = MIB(2)}};
    struct fl_gpu_mirror_options o = mirror_options(slot, 1);
    (void)state;
    struct fl_gpu_mirror *m = mirror_of(&o);
    assert_int_equal(fl_gpu_mirror_peer(m, 1), -ENOTSUP);
    mirror_end(m);
    if (!gpu->has_vmm || fake == NULL) {
        return;
    }
    o.reserve = MIB(64);
    m = mirror_of(&o);
    assert_int_equal(fake->devices(mirror_twin(m, 0)), 1);
    assert_ok(fl_gpu_mirror_peer(m, 1));
    assert_int_equal(fake->devices(mirror_twin(m, 0)), 3);
    assert_ok(fl_gpu_mirror_grow(m, MIB(8)));
    assert_int_equal(fake->devices(mirror_twin(m, 0) + MIB(6)), 3);
    assert_int_equal(fl_gpu_mirror_peer(m, 64), -EINVAL);
    assert_int_equal(fl_gpu_mirror_peer(m, 5), -EINVAL); /* the driver knows of no such device */
    assert_ok(fl_gpu_mirror_grow(m, MIB(16)));
    mirror_end(m);
}

/* A descriptor a piece, if it was asked for when the mirror was made. */
static void another_process_may_have_its_pieces(void **state)
{
    struct fl_gpu_slot slot[] = {{.size = MIB(2)}};
    struct fl_gpu_mirror_options o = mirror_options(slot, 1);
    int fd = -1;
    size_t offset, len;
    (void)state;
    o.reserve = MIB(64);
    struct fl_gpu_mirror *m = mirror_of(&o);
    assert_int_equal(fl_gpu_mirror_export(m, 0, &fd, &offset, &len), -ENOTSUP);
    mirror_end(m);
    if (!gpu->has_vmm || !gpu->has_export) {
        return;
    }
    o.shared = true;
    m = mirror_of(&o);
    assert_ok(fl_gpu_mirror_grow(m, MIB(8)));
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(fl_gpu_mirror_export(m, i, &fd, &offset, &len));
        assert_int_equal(offset, i * MIB(2));
        assert_int_equal(len, i == 0 ? MIB(2) : MIB(6));
        assert_int_equal(close(fd), 0);
    }
    assert_int_equal(fl_gpu_mirror_export(m, 2, &fd, &offset, &len), -ENODATA);
    assert_int_equal(fl_gpu_mirror_export(m, 0, NULL, &offset, &len), -EINVAL);
    mirror_end(m);
}

int main(void)
{
#define each(f) cmocka_unit_test_setup_teardown(f, gpu_each, gpu_end)
    const struct CMUnitTest tests[] = {
        each(peers_have_it_as_it_grows),
        each(another_process_may_have_its_pieces),
    };

    mirror_main("test_gpu_mirror_share");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
