/* Mirrors: where blocks lie, what push copies and in how many copies, and whose a slot is when. */
#include "gpu/mirror_fixture.h"
#include "prop/seed.h"

static bool overlap(size_t a, size_t alen, size_t b, size_t blen)
{
    return a < b + blen && b < a + alen;
}

/* Every pair, with inputs in each slot. */
static void check_layout(const struct fl_gpu_slot *slot, size_t n, unsigned slots,
                         const struct fl_mirror_layout *p)
{
    for (size_t i = 0; i < n; i++) {
        size_t align = slot[i].align != 0 ? slot[i].align : 256;
        size_t copies = slot[i].input ? slots : 1;
        for (size_t c = 0; c < copies; c++) {
            size_t at = slot[i].offset + c * p->zone;
            assert_int_equal(at % align, 0);
            assert_true(at + slot[i].size <= p->len);
            for (size_t j = 0; j < n; j++) {
                for (size_t d = 0; d < (slot[j].input ? slots : 1); d++) {
                    assert_true(
                        (i == j && c == d) ||
                        !overlap(at, slot[i].size, slot[j].offset + d * p->zone, slot[j].size));
                }
            }
        }
        if (!slot[i].input) {
            assert_true(slot[i].offset >= slots * p->zone);
        }
    }
}

static bool is_covered(const struct fl_mirror_layout *p, const struct fl_gpu_slot *s)
{
    for (size_t i = 0; i < p->runs; i++) {
        if (s->offset >= p->run[i].offset &&
            s->offset + s->size <= p->run[i].offset + p->run[i].len) {
            return true;
        }
    }
    return s->size == 0;
}

CASE(blocks_lie_apart_and_inputs_once_a_slot)
{
    static struct fl_gpu_slot slot[24];
    static struct fl_mirror_run run[24];
    uint64_t seed = 7;
    for (int round = 0; round < 400; round++) {
        size_t n = 1 + seed_next(&seed) % 24, gap = (size_t)1 << seed_next(&seed) % 20;
        unsigned slots = 1 + (unsigned)(seed_next(&seed) % 2);
        struct fl_mirror_layout p = {.run = run};
        for (size_t i = 0; i < n; i++) {
            slot[i] = (struct fl_gpu_slot){
                .size = seed_next(&seed) % (1 << seed_next(&seed) % 20),
                .align = seed_next(&seed) % 2 ? (size_t)1 << seed_next(&seed) % 16 : 0,
                .input = seed_next(&seed) % 2};
        }
        assert_int_equal(fl_mirror_lay_out(slot, n, slots, gap, &p), 0);
        check_layout(slot, n, slots, &p);
        for (size_t i = 0; i < n; i++) {
            assert_true(!slot[i].input || is_covered(&p, &slot[i]));
        }
        for (size_t i = 1; i < p.runs; i++) { /* what was left out was worth it */
            assert_true(run[i].offset - (run[i - 1].offset + run[i - 1].len) > gap);
        }
    }
}

#define REFUSED(code, slots, n, ...)                                                               \
    do {                                                                                           \
        struct fl_gpu_mirror_options o = mirror_options(slots, n);                                 \
        struct fl_gpu_mirror *m = NULL;                                                            \
        __VA_ARGS__;                                                                               \
        assert_int_equal(fl_gpu_mirror_create(gpu, &o, &m), code);                                 \
        assert_null(m);                                                                            \
    } while (0)

CASE(what_cannot_be_laid_out_is_refused)
{
    struct fl_gpu_slot odd = {.size = 1, .align = 3}, all = {.size = SIZE_MAX}, good = {.size = 8},
                       large = {.size = SIZE_MAX / 64},
                       two[] = {{.size = SIZE_MAX / 4}, {.size = SIZE_MAX / 4}};
    struct fl_gpu_mirror_options right = mirror_options(&good, 1);
    struct fl_gpu_mirror *none = NULL;

    REFUSED(-EINVAL, &odd, 1);
    REFUSED(-EINVAL, &all, 1);
    REFUSED(-EINVAL, two, 2);
    REFUSED(-EINVAL, &good, 0);
    REFUSED(-EINVAL, &good, 1, o.inputs = 3);
    REFUSED(-ENOMEM, &large, 1);
    assert_int_equal(fl_gpu_mirror_create(gpu, &right, NULL), -EINVAL);
    assert_int_equal(fl_gpu_mirror_create(gpu, NULL, &none), -EINVAL);
    assert_int_equal(fl_gpu_mirror_destroy(NULL), -EINVAL);
}

CASE(twins_are_one_addition_apart)
{
    struct fl_gpu_mirror *m = mirror_of_input(MIB(3), 1);
    const struct fl_gpu_mirror_map *map = fl_gpu_mirror_map(m);
    uint64_t first = mirror_twin(m, 0);

    assert_true(first != 0);
    assert_int_equal(mirror_twin(m, MIB(4) + 5) - first, MIB(4) + 5);
    assert_int_equal(fl_gpu_twin(map, (char *)map->host - 1), 0);
    assert_int_equal(fl_gpu_twin(map, (char *)map->host + map->len), 0);
    assert_int_equal(fl_gpu_twin(map, m), 0);
    mirror_end(m);
}

/* Twenty steps: the slot that begin gives is written, pushed, and read by a kernel on the same
 * stream; the outcome comes back. */
GPU_SCHEDULED(slots_are_written_when_they_are_not_read)
{
    struct fl_gpu_slot slot[] = {
        {.size = KIB(20), .input = true}, {.size = KIB(300), .input = true}, {.size = KIB(64)}};
    void *stream = gpu_stream();
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);
    const struct fl_gpu_mirror_map *map = fl_gpu_mirror_map(m);

    for (unsigned i = 0; i < 20; i++) {
        unsigned char value = (unsigned char)(i + 1);
        void *base = mirror_begin(m);
        assert_ptr_equal(base, mirror_host(m, i % 2 * m->zone));
        mirror_write((char *)base + slot[0].offset, slot[0].size, value);
        mirror_write((char *)base + slot[1].offset, slot[1].size, (unsigned char)(value ^ 0x80));
        assert_ok(fl_gpu_mirror_push(m, stream));
        uint64_t there = fl_gpu_twin(map, base);
        gpu_copy(stream, mirror_twin(m, slot[2].offset), there + slot[1].offset, KIB(64));
        if (i % 5 == 4) {
            void *back = mirror_host(m, slot[2].offset);
            assert_ok(fl_gpu_mirror_pull_range(m, back, KIB(64), stream));
            gpu_wait(stream);
            if (fake != NULL) {
                fake->host_access(back, KIB(64), false);
            }
            assert_true(all_are(back, KIB(64), (unsigned char)(value ^ 0x80)));
            assert_true(gpu_holds(stream, there + slot[0].offset, slot[0].size, value));
        }
    }
    if (fake != NULL) {
        assert_int_equal(fake->implicit_syncs(), 0);
        assert_int_equal(fake->pageable_copies(), 4); /* gpu_holds's own */
    }
    mirror_end(m);
}

/* That it would be seen: the slot that was just pushed is written. */
GPU_FAKE_TEST(who_does_not_begin_is_reported)
{
    fake->schedule(FAKE_CUDA_LATE, 0);
    struct fl_gpu_mirror *m = mirror_of_input(KIB(20), 2);
    void *stream = gpu_stream(), *base = mirror_begin(m);
    mirror_write(base, KIB(20), 1);
    assert_ok(fl_gpu_mirror_push(m, stream));
    mirror_write(base, KIB(20), 2);
    assert_int_equal(fake->races(), 1);
    assert_ok(fl_gpu_mirror_destroy(m));
    fake->reset(true);
}

/* A range that is pushed by itself holds its slot too, whichever stream it is on; also one that has
 * gone, whose handle is another's by now. */
GPU_SCHEDULED(each_stream_counts)
{
    void *a = gpu_stream(), *b = gpu_stream();
    struct fl_gpu_mirror *m = mirror_of_input(KIB(256), 1);

    for (unsigned char i = 1; i < 6; i++) {
        char *base = mirror_begin(m);
        mirror_write(base, KIB(256), i);
        assert_ok(fl_gpu_mirror_push_range(m, base, KIB(128), a));
        assert_ok(fl_gpu_mirror_push_range(m, base + KIB(128), KIB(128), b));
    }
    for (unsigned char i = 1; i < 6; i++) {
        char *base = mirror_begin(m);
        mirror_write(base, KIB(256), i);
        for (size_t half = 0; half < 2; half++) {
            void *brief = gpu_stream();
            assert_ok(fl_gpu_mirror_push_range(m, base + half * KIB(128), KIB(128), brief));
            gpu_stream_end(brief);
        }
    }
    (void)mirror_begin(m);
    assert_true(gpu_holds(a, mirror_twin(m, 0), KIB(128), 5));
    assert_true(gpu_holds(b, mirror_twin(m, KIB(128)), KIB(128), 5));
    mirror_end(m);
}

/* Three inputs, so far apart that each is a copy; and with small gaps, one. */
static uint64_t copies_of_push(size_t align, void *stream, bool batch)
{
    struct fl_gpu_slot slot[3];

    for (size_t i = 0; i < 3; i++) {
        slot[i] = (struct fl_gpu_slot){.size = KIB(4), .align = align, .input = true};
    }
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);
    m->has_batch = m->has_batch && batch;
    void *base = mirror_begin(m);
    for (size_t i = 0; i < 3; i++) {
        mirror_write((char *)base + slot[i].offset, KIB(4), (unsigned char)(i + 1));
    }
    uint64_t before = fake->copies();
    assert_ok(fl_gpu_mirror_push(m, stream));
    uint64_t n = fake->copies() - before;
    struct fl_gpu_mirror_stats counted = {.size = sizeof counted};
    assert_ok(fl_gpu_mirror_stats(m, &counted));
    assert_int_equal(counted.copies, n); /* a batch counts each of its own */
    assert_ok(fl_gpu_mirror_push(m, stream));
    gpu_wait(stream);
    for (size_t i = 0; i < 3; i++) {
        assert_true(fake->holds(fl_gpu_twin(fl_gpu_mirror_map(m), base) + slot[i].offset, KIB(4),
                                (unsigned char)(i + 1)));
    }
    mirror_end(m);
    return n;
}

/* Three copies, or a batch of them, the second of which, or all, the driver refuses. */
static void counts_what_is_submitted(const char *call, unsigned nth, bool batch, uint64_t copies)
{
    struct fl_gpu_slot slot[3];
    struct fl_gpu_mirror_stats s = {.size = sizeof s};
    void *stream = gpu_stream();

    for (size_t i = 0; i < 3; i++) {
        slot[i] = (struct fl_gpu_slot){.size = KIB(4), .align = MIB(1), .input = true};
    }
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 3);
    m->has_batch = m->has_batch && batch;
    (void)mirror_begin(m);
    fake->refuse(call, nth, FL_CUDA_ERROR_UNKNOWN, false);
    assert_int_equal(fl_gpu_mirror_push(m, stream), -EIO);
    fake->refuse(NULL, 0, 0, false);
    assert_ok(fl_gpu_mirror_stats(m, &s));
    assert_int_equal(s.copies, copies);
    assert_int_equal(s.copied_bytes, copies * KIB(4));
    mirror_end(m);
    gpu_stream_end(stream);
}

GPU_FAKE_TEST(a_refused_copy_is_not_counted)
{
    counts_what_is_submitted("cuMemcpyHtoDAsync", 2, false, 1);
    counts_what_is_submitted("cuMemcpyBatchAsync", 1, true, 0);
}

GPU_FAKE_TEST(a_step_is_as_few_copies_as_pay)
{
    void *stream = gpu_stream();
    assert_int_equal(copies_of_push(256, stream, true), 1);
    assert_int_equal(copies_of_push(KIB(64), stream, true), 1);
    assert_int_equal(fake->calls("cuMemcpyBatchAsync"), 0);
    assert_int_equal(copies_of_push(MIB(1), stream, true), 3);
    assert_int_equal(fake->calls("cuMemcpyBatchAsync"), 2);
    assert_int_equal(copies_of_push(MIB(1), stream, false), 3);
    assert_int_equal(copies_of_push(MIB(1), NULL, true), 3); /* no batches there */
    assert_int_equal(fake->calls("cuMemcpyBatchAsync"), 2);
    fake->refuse("cuMemcpyBatchAsync", 1, FL_CUDA_ERROR_NOT_SUPPORTED, true);
    assert_int_equal(copies_of_push(MIB(1), stream, true), 3);
    assert_int_equal(fake->calls("cuMemcpyBatchAsync"), 3); /* who has none is asked once */
    fake->refuse(NULL, 0, 0, false);
}

CASE(copies_end_at_registrations)
{
    struct fl_gpu_slot slot[] = {{.size = MIB(7), .input = true}};
    size_t chunk = fl_pinned_chunk;
    void *stream = gpu_stream();

    fl_pinned_chunk = MIB(2);
    if (fake != NULL) {
        fake->set(FAKE_CUDA_REGISTER_MAX, MIB(2));
    }
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 1);
    assert_int_equal(m->host.range.len / m->host.chunk, 7);
    for (unsigned char i = 1; i < 4; i++) {
        char *base = mirror_begin(m);
        mirror_write(base, MIB(7), i);
        assert_ok(fl_gpu_mirror_push(m, stream));
        assert_true(gpu_holds(stream, fl_gpu_twin(fl_gpu_mirror_map(m), base), MIB(7), i));
        assert_ok(fl_gpu_mirror_pull_range(m, base + MIB(1), MIB(5), stream));
        gpu_wait(stream);
    }
    mirror_end(m);
    fl_pinned_chunk = chunk;
}

CASE(what_is_not_the_mirrors_is_refused)
{
    char own[16];
    void *stream = gpu_stream();
    struct fl_gpu_mirror *m = mirror_of_input(MIB(1), 1);
    char *end = (char *)fl_gpu_mirror_map(m)->host + fl_gpu_mirror_map(m)->len;
    assert_int_equal(fl_gpu_mirror_push_range(m, own, sizeof own, stream), -EINVAL);
    assert_int_equal(fl_gpu_mirror_push_range(m, end - 8, 9, stream), -EINVAL);
    assert_int_equal(fl_gpu_mirror_pull_range(m, end, 0, stream), -EINVAL);
    assert_int_equal(fl_gpu_mirror_pull_range(m, end - 8, SIZE_MAX, stream), -EINVAL);
    assert_int_equal(fl_gpu_mirror_push(m, stream), -EINVAL); /* not begun */
    assert_int_equal(fl_gpu_mirror_begin(m, NULL), -EINVAL);
    assert_int_equal(fl_gpu_close(gpu), -EBUSY);
    assert_ok(fl_gpu_mirror_push_range(m, end - 8, 8, stream));
    mirror_end(m);
}

GPU_FAKE_TEST(captured_streams_are_refused)
{
    struct fl_gpu_mirror *m = mirror_of_input(MIB(1), 2);
    void *stream = gpu_stream(), *base = mirror_begin(m);

    fake->capture(stream, true);
    assert_int_equal(fl_gpu_mirror_push(m, stream), -EINPROGRESS);
    assert_int_equal(fl_gpu_mirror_push_range(m, base, 1, stream), -EINPROGRESS);
    fake->capture(stream, false);
    assert_ok(fl_gpu_mirror_push(m, stream));
    mirror_end(m);
}

/* A slot that is copied from the device is written by it: begin waits for that as well. */
GPU_SCHEDULED(what_is_pulled_is_waited_for)
{
    void *stream = gpu_stream(), *other = gpu_stream();
    struct fl_gpu_mirror *m = mirror_of_input(MIB(1), 1);
    void *base = mirror_begin(m);

    gpu_fill(stream, mirror_twin(m, 0), MIB(1), 5);
    gpu_hold(stream);
    assert_ok(fl_gpu_mirror_pull_range(m, base, MIB(1), stream));
    base = mirror_begin(m);
    assert_true(all_are(base, MIB(1), 5));
    mirror_write(base, MIB(1), 6);
    assert_ok(fl_gpu_mirror_push(m, stream));
    /* Outside the slots none begins; the end waits. */
    assert_ok(fl_gpu_mirror_pull_range(m, mirror_host(m, MIB(1)), MIB(1), other));
    gpu_stream_end(other);
    mirror_end(m);
}

/* What ends while a stream is captured breaks no capture, and waits for its copies all the same. */
GPU_FAKE_TEST(an_end_breaks_no_capture)
{
    fake->schedule(FAKE_CUDA_LATE, 0);
    void *captured = gpu_stream(), *stream = gpu_stream();
    for (int mode = 0; mode < 3; mode++) {
        struct fl_gpu_mirror *m = mirror_of_input(MIB(1), 2);
        (void)mirror_begin(m);
        fake->capture_as(mode);
        fake->capture(captured, true);
        assert_ok(fl_gpu_mirror_push(m, stream));
        (void)mirror_begin(m);
        mirror_end(m);
        assert_int_equal(fake->violations(), 0);
        fake->capture(captured, false);
    }
    gpu_wait(stream);
}

static struct fl_gpu_mirror *shared;
static void *others_stream, *others_at;

static void push_elsewhere(void *unused)
{
    (void)unused;
    if (gpu_calls.cuCtxSetCurrent(gpu->context) == 0) {
        assert_ok(fl_gpu_mirror_push_range(shared, others_at, KIB(4), others_stream));
    }
}

/* Ranges of one slot are copied by two threads, each on a stream of its own, or both on one:
 * neither holds a lock over the driver's calls, and begin waits for both. */
GPU_FAKE_TEST(no_lock_is_held_over_a_copys_event)
{
    static const char *const during[] = {"cuEventRecord", "cuStreamWaitEvent", "cuEventCreate",
                                         "cuEventQuery"};
    void *stream[] = {gpu_stream(), gpu_stream()};

    shared = mirror_of_input(MIB(1), 2);
    fake->schedule(FAKE_CUDA_LATE, 0);
    for (size_t i = 0; i < 2 * sizeof during / sizeof during[0]; i++) {
        char *base = mirror_begin(shared);
        others_stream = stream[i % 2];
        others_at = base + KIB(128);
        fake->amid(during[i / 2], push_elsewhere, NULL);
        assert_ok(fl_gpu_mirror_push_range(shared, base, KIB(64), stream[0]));
        assert_ok(fl_gpu_mirror_push_range(shared, base, KIB(64), stream[0]));
        (void)mirror_begin(shared);
        (void)mirror_begin(shared); /* of its slot again: amid that there may be another copy */
        fake->amid(NULL, NULL, NULL);
        (void)mirror_begin(shared);
        mirror_write(mirror_begin(shared), KIB(256), 1);
        assert_int_equal(fake->violations(), 0);
    }
    mirror_end(shared);
}

MIRROR_MAIN("test_gpu_mirror")
