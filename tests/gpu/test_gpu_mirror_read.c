/* What is read from a file is there, and on its way. */
#include "gpu/mirror_fixture.h"

static int file_of(size_t len)
{
    char path[] = "test_gpu_mirror_read.XXXXXX";
    int fd = mkstemp(path);
    unsigned char *p = malloc(len);

    assert_true(fd >= 0 && p != NULL && unlink(path) == 0);
    for (size_t i = 0; i < len; i++) {
        p[i] = (unsigned char)(1 + i / KIB(4) % 251);
    }
    assert_true(write(fd, p, len) == (ssize_t)len);
    free(p);
    return fd;
}

static bool is_of_file(const unsigned char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != (unsigned char)(1 + i / KIB(4) % 251)) {
            return false;
        }
    }
    return true;
}

GPU_SCHEDULED(files_come_to_the_device)
{
    struct fl_gpu_slot slot[] = {{.size = MIB(12), .input = true}, {.size = MIB(12)}};
    void *stream = gpu_stream(), *base = NULL;
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 2);
    int fd = file_of(MIB(12));

    for (int i = 0; i < 4; i++) {
        assert_ok(fl_gpu_mirror_begin(m, &base));
        assert_ok(fl_gpu_mirror_read(m, fd, 0, base, MIB(12), stream));
        assert_true(is_of_file(base, MIB(12)));
        void *back = mirror_host(m, slot[1].offset);
        gpu_copy(stream, mirror_twin(m, slot[1].offset), fl_gpu_twin(fl_gpu_mirror_map(m), base),
                 MIB(12));
        assert_ok(fl_gpu_mirror_pull_range(m, back, MIB(12), stream));
        gpu_wait(stream);
        assert_true(is_of_file(back, MIB(12)));
    }
    assert_int_equal(fl_gpu_mirror_read(m, fd, MIB(11), base, MIB(2), stream), -ENODATA);
    assert_int_equal(fl_gpu_mirror_read(m, -1, 0, base, MIB(2), stream), -EINVAL);
    assert_int_equal(fl_gpu_mirror_read(m, fd, UINT64_MAX, base, MIB(2), stream), -EINVAL);
    assert_int_equal(fl_gpu_mirror_read(m, fd, 0, &fd, 1, stream), -EINVAL);
    gpu_wait(stream);
    close(fd);
    mirror_end(m);
}

/* What was read is copied before the next is read to the same place. */
GPU_SCHEDULED(a_range_is_waited_for)
{
    enum { LEN = 64 << 10 };
    struct fl_gpu_mirror *m = mirror_of_input(LEN, 1);
    void *stream = gpu_stream(), *base = mirror_begin(m), *back = mirror_host(m, LEN);
    int fd = file_of(2 * LEN);

    gpu_hold(stream);
    assert_ok(fl_gpu_mirror_read(m, fd, 0, base, LEN, stream));
    gpu_copy(stream, mirror_twin(m, LEN), mirror_twin(m, 0), LEN);
    assert_ok(fl_gpu_mirror_read(m, fd, LEN, base, LEN, stream));
    assert_ok(fl_gpu_mirror_pull_range(m, back, LEN, stream));
    gpu_wait(stream);
    assert_true(is_of_file(back, LEN));
    close(fd);
    mirror_end(m);
}

CASE(without_a_device_the_host_has_it)
{
    struct fl_gpu_slot slot[] = {{.size = MIB(3), .input = true}};
    struct fl_gpu_mirror_options o = mirror_options(slot, 1);
    struct fl_gpu_mirror *m = NULL;
    void *base = NULL;
    int fd = file_of(MIB(3));
    assert_ok(fl_gpu_mirror_create(NULL, &o, &m));
    assert_int_equal(fl_gpu_mirror_map(m)->delta, 0);
    assert_ok(fl_gpu_mirror_begin(m, &base));
    assert_int_equal(fl_gpu_mirror_read(m, fd, 0, base, MIB(3), NULL), -ENODEV);
    assert_true(is_of_file(base, MIB(3)));
    assert_int_equal(fl_gpu_mirror_push(m, NULL), -ENODEV);
    assert_int_equal(fl_gpu_mirror_pull_range(m, base, 1, NULL), -ENODEV);
    assert_ok(fl_gpu_mirror_destroy(m));
    close(fd);
}

MIRROR_MAIN("test_gpu_mirror_read")
