/* The packer: what it answers to odd input, what it promises about its layouts, and what the
 * checker of these refuses. */
#include "pack/pack.h"
#include "unit/cmocka_all.h"
#include "unit/packed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512 };

static struct fl_pack_buffer buffer[MOST];
static char *scratch;
static const size_t scratch_len = (size_t)8 << 20;

static int setup(void **state)
{
    (void)state;
    scratch = aligned_alloc(4096, scratch_len);
    return scratch == NULL;
}

static int teardown(void **state)
{
    (void)state;
    free(scratch);
    return 0;
}

static struct fl_pack_buffer of(uint64_t birth, uint64_t death, uint64_t size)
{
    return (struct fl_pack_buffer){.birth = birth, .death = death, .size = size};
}

static struct fl_pack_result pack(size_t n)
{
    struct fl_pack_result out;

    memset(scratch, 0xa5, scratch_len);
    assert_int_equal(fl_pack(buffer, n, scratch, scratch_len, &out), 0);
    assert_true(packed_well(buffer, n, out.height));
    assert_true(out.height >= out.bound);
    return out;
}

static void nothing_has_no_height(void **state)
{
    (void)state;
    struct fl_pack_result out = pack(0);
    assert_int_equal(out.height, 0);
    assert_int_equal(out.bound, 0);
}

static void one_buffer_lies_at_the_bottom(void **state)
{
    (void)state;
    buffer[0] = of(5, 6, 77);
    struct fl_pack_result out = pack(1);
    assert_int_equal(out.height, 77);
    assert_int_equal(buffer[0].offset, 0);
}

static void what_has_no_size_or_no_life_takes_no_room(void **state)
{
    (void)state;
    buffer[0] = of(0, 10, 0);
    buffer[1] = of(3, 3, 1000);
    buffer[2] = of(0, 10, 8);
    assert_int_equal(pack(3).height, 8);
    buffer[2].size = 0;
    assert_int_equal(pack(3).height, 0);
}

static void a_death_at_anothers_birth_is_no_conflict(void **state)
{
    (void)state;
    buffer[0] = of(0, 5, 100);
    buffer[1] = of(5, 9, 100);
    assert_int_equal(pack(2).height, 100);
    buffer[1].birth = 4;
    assert_int_equal(pack(2).height, 200);
}

static void equal_times_conflict_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        buffer[i] = of(7, 8, i + 1);
    }
    assert_int_equal(pack(40).height, 40 * 41 / 2);
}

static void times_may_be_anything(void **state)
{
    (void)state;
    buffer[0] = of(0, UINT64_MAX, 3);
    buffer[1] = of(UINT64_MAX - 1, UINT64_MAX, 4);
    buffer[2] = of(1, UINT64_MAX - 1, 4);
    assert_int_equal(pack(3).height, 7);
}

static void sizes_may_be_near_the_end_of_addresses(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        buffer[i] = of(i, i + 3, ((uint64_t)1 << 47) - 1 - i);
    }
    /* The first three live together, and they are the largest. */
    assert_int_equal(pack(8).bound, 3 * ((uint64_t)1 << 47) - 6);
}

static void malformed_input_is_refused(void **state)
{
    (void)state;
    struct fl_pack_result out;

    for (unsigned kind = 0; kind < 4; kind++) {
        for (unsigned i = 0; i < 4; i++) {
            buffer[i] = of(0, 2, 64);
        }
        if (kind == 0) {
            buffer[2].birth = 3;
        } else if (kind == 1) {
            buffer[2].size = (uint64_t)1 << 47;
        } else {
            buffer[2].align = kind == 2 ? 3 : (uint64_t)1 << 48;
        }
        assert_int_equal(fl_pack(buffer, 4, scratch, scratch_len, &out), -EINVAL);
    }
}

static void sizes_whose_sum_overflows_are_refused(void **state)
{
    (void)state;
    size_t n = (size_t)1 << 16;
    struct fl_pack_buffer *many = calloc(n, sizeof *many);
    size_t len = fl_pack_scratch(n);
    void *room = malloc(len);
    struct fl_pack_result out;

    assert_non_null(many);
    assert_non_null(room);
    for (size_t i = 0; i < n; i++) {
        many[i] = of(0, 1, ((uint64_t)1 << 47) - 1);
    }
    assert_int_equal(fl_pack(many, n, room, len, &out), -EINVAL);
    free(room);
    free(many);
}

static void too_little_scratch_is_an_answer(void **state)
{
    (void)state;
    size_t len = fl_pack_scratch(MOST);
    struct fl_pack_result out;

    for (unsigned i = 0; i < MOST; i++) {
        buffer[i] = of(i, i + 1 + i % 7, 1 + i % 13);
    }
    assert_int_equal(fl_pack(buffer, MOST, scratch, len - 1, &out), -ENOMEM);
    assert_int_equal(fl_pack(buffer, MOST, scratch, len, &out), 0);
}

/* What fl_pack_scratch() asks for is enough whatever the buffers are like. */
static void the_least_scratch_is_enough(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        for (unsigned i = 0; i < MOST; i++) {
            uint64_t birth = kind == 0 ? 0 : 2 * i, life = kind == 1 ? 1 : kind == 2 ? MOST : 3;
            buffer[i] = of(birth, birth + life, 1 + i);
            buffer[i].align = (uint64_t)1 << i % 5;
        }
        struct fl_pack_result out;
        size_t len = fl_pack_scratch(MOST);
        assert_int_equal(fl_pack(buffer, MOST, scratch, len, &out), 0);
        assert_true(packed_well(buffer, MOST, out.height));
    }
}

static void offsets_are_aligned(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        buffer[i] = of(i, i + 5, 1 + 37 * i);
        buffer[i].align = i % 3 == 0 ? 4096 : i % 3 == 1 ? 64 : 0;
    }
    (void)pack(60);
    for (unsigned i = 0; i < 60; i += 3) {
        assert_int_equal(buffer[i].offset % 4096, 0);
        assert_int_equal(buffer[i + 1].offset % 64, 0);
    }
}

/* With one alignment for all, heights are multiples of it: there is no layout between. */
static void the_bound_counts_whole_units(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        buffer[i] = of(0, 1, 65537);
        buffer[i].align = 65536;
    }
    struct fl_pack_result out = pack(10);
    assert_int_equal(out.bound, 10 * 131072);
    assert_int_equal(out.height, out.bound);
}

/* ---- the checker ---- */

static void the_checker_sees_what_is_wrong(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        buffer[i] = of(i, i + 3, 64);
        buffer[i].align = 64;
        buffer[i].offset = 64 * (i % 3);
    }
    assert_true(packed_well(buffer, 30, 192));
    assert_false(packed_well(buffer, 30, 191));
    buffer[17].offset = 64 * (16 % 3);
    assert_false(packed_well(buffer, 30, 192));
    buffer[17].offset = 64 * (17 % 3) + 32;
    assert_false(packed_well(buffer, 30, 1000));
    buffer[17].offset = UINT64_MAX - 63;
    assert_false(packed_well(buffer, 30, UINT64_MAX - 1));
    buffer[17].offset = 64 * (17 % 3);
    buffer[16].size = 65;
    assert_false(packed_well(buffer, 30, 1000));
    buffer[16].size = 0;
    assert_true(packed_well(buffer, 30, 192));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_no_height),
        cmocka_unit_test(one_buffer_lies_at_the_bottom),
        cmocka_unit_test(what_has_no_size_or_no_life_takes_no_room),
        cmocka_unit_test(a_death_at_anothers_birth_is_no_conflict),
        cmocka_unit_test(equal_times_conflict_all),
        cmocka_unit_test(times_may_be_anything),
        cmocka_unit_test(sizes_may_be_near_the_end_of_addresses),
        cmocka_unit_test(malformed_input_is_refused),
        cmocka_unit_test(sizes_whose_sum_overflows_are_refused),
        cmocka_unit_test(too_little_scratch_is_an_answer),
        cmocka_unit_test(the_least_scratch_is_enough),
        cmocka_unit_test(offsets_are_aligned),
        cmocka_unit_test(the_bound_counts_whole_units),
        cmocka_unit_test(the_checker_sees_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
