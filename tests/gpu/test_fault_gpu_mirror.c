/* Each call of the driver's refused, one after the other, while a mirror is made, used and ended: a
 * status, and nothing that leaks. */
#include "gpu/mirror_fixture.h"

static struct fl_gpu_slot slot[] = {{.size = KIB(20), .align = MIB(1), .input = true},
                                    {.size = KIB(300), .align = MIB(1), .input = true},
                                    {.size = MIB(3)}};

static struct fl_gpu_mirror *make(int *out_rc)
{
    struct fl_gpu_mirror_options o = mirror_options(slot, 3);
    struct fl_gpu_mirror *m = NULL;

    *out_rc = fl_gpu_mirror_create(gpu, &o, &m);
    return m;
}

/* As many as there are: what is refused once may be absorbed, so that the end is when nothing was
 * refused. */
static bool after(unsigned n, bool for_ever, int code)
{
    fake->reset(true);
    fake->refuse(NULL, n, code, for_ever);
    return true;
}

static bool over(void)
{
    bool fired = fake->refused();

    fake->refuse(NULL, 0, 0, false);
    return fired;
}

static void made_or_not(int code)
{
    unsigned alone = 0;
    size_t chunk = fl_pinned_chunk;

    fl_pinned_chunk = MIB(2); /* four registrations, each of which may be refused */
    for (unsigned n = 1; after(n, false, code); n++) {
        int rc = 0;
        unsigned before = fake->live();
        struct fl_gpu_mirror *m = make(&rc);
        bool fired = over();
        assert_true(rc == 0 ? m != NULL : m == NULL && fired);
        if (m != NULL) {
            alone += fl_gpu_mirror_map(m)->delta == 0;
            assert_ok(fl_gpu_mirror_destroy(m));
        }
        assert_int_equal(fake->live(), before);
        assert_int_equal(fake->registered(), 0);
        assert_int_equal(gpu->users, 0);
        assert_int_equal(mirror_region.held.pinned, 0);
        assert_string_equal(fake->report(), "");
        if (!fired) {
            break;
        }
    }
    fl_pinned_chunk = chunk;
    assert_int_equal(alone, 4); /* that is no reason to refuse the mirror */
}

CASE(a_mirror_is_made_or_nothing_is_held)
{
    made_or_not(FL_CUDA_ERROR_UNKNOWN);
    made_or_not(FL_CUDA_ERROR_OUT_OF_MEMORY);
}

CASE(a_begin_that_was_refused_is_begun_again)
{
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);
    void *first = mirror_begin(m), *base = NULL;

    assert_ok(fl_gpu_mirror_push(m, NULL));
    (void)mirror_begin(m);
    fake->refuse("cuEventQuery", 1, FL_CUDA_ERROR_UNKNOWN, false);
    assert_int_equal(fl_gpu_mirror_begin(m, &base), -EIO);
    assert_ptr_equal(mirror_begin(m), first);
    assert_ok(fl_gpu_mirror_push(m, NULL)); /* nor is it lost amid a capture */
    fake->refuse("cuEventQuery", 1, FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false);
    assert_int_equal(fl_gpu_mirror_destroy(m), -EINPROGRESS);
    mirror_end(m);
}

/* One step; the first status that is not 0. */
static int use(struct fl_gpu_mirror *m, void *stream)
{
    void *base = NULL;
    int first = 0, rc[4];

    rc[0] = fl_gpu_mirror_begin(m, &base);
    if (rc[0] == 0) {
        mirror_write(base, KIB(20), 1);
    }
    rc[1] = rc[0] == 0 ? fl_gpu_mirror_push(m, stream) : 0;
    rc[2] = fl_gpu_mirror_push_range(m, mirror_host(m, 0), KIB(64), stream);
    rc[3] = fl_gpu_mirror_pull_range(m, mirror_host(m, slot[2].offset), KIB(64), stream);
    for (int i = 0; i < 4; i++) {
        first = first != 0 ? first : rc[i];
    }
    return first;
}

static void used_all_the_same(enum fake_cuda_mode mode)
{
    for (unsigned n = 1; after(0, false, 0); n++) {
        fake->schedule(mode, n);
        unsigned before = fake->live();
        void *stream = gpu_stream();
        struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);
        assert_ok(use(m, stream));
        fake->refuse(NULL, n, FL_CUDA_ERROR_UNKNOWN, false);
        int rc = use(m, stream);
        bool fired = over();
        assert_true(rc == 0 || fired);
        for (int i = 0; i < 4; i++) { /* as if nothing had been: the clocks say so too */
            assert_ok(use(m, stream));
        }
        mirror_end(m);
        gpu_stream_end(stream);
        assert_int_equal(fake->live(), before);
        assert_string_equal(fake->report(), "");
        if (!fired) {
            break;
        }
    }
}

CASE(a_step_that_was_refused_is_the_last_that_is)
{
    used_all_the_same(FAKE_CUDA_EAGER);
    used_all_the_same(FAKE_CUDA_LATE);
}

/* What cannot be given back is lost, and no more than that; host memory that is registered still is
 * in no pool. */
CASE(an_end_that_is_refused_ends)
{
    for (unsigned n = 1; after(0, false, 0); n++) {
        unsigned before = fake->live();
        struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);
        size_t pinned = mirror_region.held.pinned;
        fake->refuse(NULL, n, FL_CUDA_ERROR_UNKNOWN, false);
        int rc = fl_gpu_mirror_destroy(m);
        bool fired = over();
        assert_true(rc == 0 || fired);
        if (gpu->users != 0) { /* it was not even begun */
            assert_ok(fl_gpu_mirror_destroy(m));
        }
        assert_true(fake->live() <= before + 9);
        if (fake->registered() != 0 && pinned != 0) {
            assert_int_equal(mirror_region.held.pinned, pinned);
        }
        assert_int_equal(fake->races(), 0);
        if (!fired) {
            assert_int_equal(fake->live(), before);
            break;
        }
    }
}

CASE(what_was_unregistered_already_is_no_refusal)
{
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);
    void *host = mirror_host(m, 0);

    fake->refuse("cuMemHostUnregister", 1, FL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, false);
    assert_ok(fl_gpu_mirror_destroy(m));
    assert_int_equal(fl_cuda.cuMemHostUnregister(host), 0); /* which the fake has still */
}

/* Nor is a mirror of nothing made when what had been registered stays so. */
CASE(a_mirror_of_nothing_is_not_made)
{
    size_t chunk = fl_pinned_chunk;
    bool fired = true;

    fl_pinned_chunk = MIB(2);
    for (unsigned n = 1; fired && after(n, true, FL_CUDA_ERROR_UNKNOWN); n++) {
        int rc = 0;
        struct fl_gpu_mirror *m = make(&rc);
        fired = over();
        assert_int_equal(m != NULL, rc == 0);
        if (m != NULL) {
            assert_true(fl_gpu_mirror_map(m)->len != 0);
            (void)fl_gpu_mirror_destroy(m);
        }
    }
    fl_pinned_chunk = chunk;
    fake->reset(true);
}

/* Who cannot be waited for may be at the memory still. */
CASE(what_cannot_be_waited_for_is_left)
{
    void *stream = gpu_stream();
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);

    fake->schedule(FAKE_CUDA_LATE, 0);
    (void)mirror_begin(m);
    assert_ok(fl_gpu_mirror_push(m, stream));
    fake->refuse("cuEventQuery", 1, FL_CUDA_ERROR_UNKNOWN, true);
    assert_int_equal(fl_gpu_mirror_destroy(m), -EIO);
    fake->refuse(NULL, 0, 0, false);
    assert_true(fake->registered() != 0);
    assert_int_equal(fake->violations(), 0);
    gpu_wait(stream);
    assert_int_equal(fake->violations(), 0);
}

static void refuse_to_wait(void *unused)
{
    (void)unused;
    fake->refuse(NULL, 1, FL_CUDA_ERROR_UNKNOWN, true);
}

/* Neither an event nor the stream says when a copy is done: the memory is not handed out. */
CASE(a_copy_that_nothing_tells_of_keeps_the_memory)
{
    void *stream = gpu_stream();
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);

    fake->schedule(FAKE_CUDA_LATE, 0);
    (void)mirror_begin(m);
    fake->amid("cuEventRecord", refuse_to_wait, NULL);
    assert_int_equal(fl_gpu_mirror_push(m, stream), -EIO);
    fake->amid(NULL, NULL, NULL);
    fake->refuse(NULL, 0, 0, false);
    assert_int_equal(fl_gpu_mirror_destroy(m), -EIO);
    assert_true(fake->registered() != 0);
    assert_int_equal(fake->violations(), 0);
    gpu_wait(stream);
}

CASE(a_driver_that_has_ended_is_told)
{
    fake->reset(true);
    void *stream = gpu_stream();
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3), *other = mirror_of_input(MIB(1), 1);
    struct fl_stats_gpu s;
    (void)mirror_begin(m);
    assert_ok(fl_gpu_mirror_push(m, stream));
    gpu_wait(stream);
    fake->set(FAKE_CUDA_GONE, 1);
    assert_int_equal(fl_gpu_mirror_push(m, stream), -ESHUTDOWN);
    assert_int_equal(fl_gpu_mirror_destroy(m), -ESHUTDOWN);
    assert_true(fl_gpu_account_read(0, false, &s));
    assert_int_equal(s.held_bytes, fl_gpu_mirror_map(other)->len);
    assert_int_equal(fl_gpu_mirror_destroy(other), -ESHUTDOWN);
    assert_int_equal(gpu->users, 0);
    gpu = NULL;
}

MIRROR_MAIN("test_fault_gpu_mirror")
