/* Reserved spans: aligned, committed in chunks, exact where the kernel counts. */
#include "core/core.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"

#include <errno.h>
#include <string.h>

#define MIB(n) ((size_t)(n) << 20)

static struct fl_vspace v;

static int each(void **state)
{
    (void)state;
    fake_install();
    memset(&v, 0, sizeof v);
    return 0;
}

static void reserve_aligns_and_gives_the_rest_back(void **state)
{
    (void)state;
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), false, "t"), 0);
    assert_int_equal(v.all.base % MIB(2), 0);
    assert_int_equal(v.all.len, MIB(8));
    assert_int_equal(v.committed, 0);
    assert_int_equal(fake_mapped(), MIB(8));
    assert_int_equal(fake.count[FAKE_COMMIT], 0);
}

static void refused_reservation_leaves_nothing(void **state)
{
    (void)state;
    fake.reserve_max = MIB(4);
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), false, "t"), -ENOMEM);
    assert_int_equal(v.all.len, 0);
    assert_int_equal(fake_mapped(), 0);
}

static void commit_goes_by_chunks_and_makes_memory_usable(void **state)
{
    (void)state;
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), false, "t"), 0);
    v.huge = true;
    assert_int_equal(fl_vspace_commit(&v, 1), 0);
    assert_int_equal(v.committed, MIB(2));
    assert_int_equal(fl_vspace_commit(&v, MIB(2)), 0);
    assert_int_equal(fake.count[FAKE_COMMIT], 1);
    assert_int_equal(fl_vspace_commit(&v, MIB(2) + 1), 0);
    assert_int_equal(v.committed, MIB(4));
    assert_true(fake_nth(FAKE_COMMIT, 1)->range.base == v.all.base + MIB(2));
    assert_int_equal(fake_nth(FAKE_COMMIT, 1)->range.len, MIB(2));
    assert_int_equal(fake.count[FAKE_ADVISE], 2);
    assert_int_equal(fake.count[FAKE_NAME], 2);
    memset((void *)v.all.base, 1, MIB(4));
}

static void the_last_chunk_ends_with_the_span(void **state)
{
    (void)state;
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), false, "t"), 0);
    v.chunk = (size_t)1 << 30;
    assert_int_equal(fl_vspace_commit(&v, 4096), 0);
    assert_int_equal(v.committed, MIB(8));
    assert_int_equal(fl_vspace_commit(&v, MIB(8)), 0);
    assert_int_equal(fl_vspace_commit(&v, MIB(8) + 1), -ENOMEM);
}

static void refused_chunk_falls_back_to_what_is_needed(void **state)
{
    (void)state;
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), false, "t"), 0);
    fake.commit_max = MIB(1);
    assert_int_equal(fl_vspace_commit(&v, 5000), 0);
    assert_int_equal(v.committed, 8192);
    assert_int_equal(fake.count[FAKE_COMMIT], 2);
    fake.commit_max = 4096;
    assert_int_equal(fl_vspace_commit(&v, MIB(3)), -ENOMEM);
    assert_int_equal(v.committed, 8192);
}

static void counted_span_maps_only_what_is_committed(void **state)
{
    (void)state;
    fake.pretend_map_at = true;
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), true, "t"), 0);
    assert_false(v.reserved);
    assert_int_equal(v.all.len, MIB(8));
    assert_int_equal(v.all.base % MIB(2), 0);
    assert_int_equal(fake.count[FAKE_RESERVE], 0);
    assert_int_equal(fake_mapped(), v.committed);
    assert_int_equal(fl_vspace_commit(&v, MIB(3)), 0);
    assert_int_equal(v.committed, MIB(4));
    assert_int_equal(fake_mapped(), MIB(4));
    assert_int_equal(fake.count[FAKE_COMMIT], 0);
    assert_int_equal(fake.count[FAKE_RESERVE], 0);
}

static void counted_span_tries_other_places_when_one_is_taken(void **state)
{
    (void)state;
    fake.pretend_map_at = true;
    fake_fail_at(1, 1u << FAKE_MAP_AT);
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), true, "t"), 0);
    assert_int_equal(fake_nth(FAKE_MAP_AT, 0)->rc, -EEXIST);
    assert_true(fake_nth(FAKE_MAP_AT, 1)->range.base == v.all.base);
    assert_true(fake_nth(FAKE_MAP_AT, 0)->range.base != v.all.base);
    fake.rc[FAKE_MAP_AT] = -EEXIST;
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), true, "t"), -ENOMEM);
}

static void commit_onto_a_foreign_mapping_is_refused(void **state)
{
    (void)state;
    fake.pretend_map_at = true;
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), true, "t"), 0);
    size_t before = v.committed;
    fake.rc[FAKE_MAP_AT] = -EEXIST;
    assert_int_equal(fl_vspace_commit(&v, MIB(2)), -ENOMEM);
    assert_int_equal(v.committed, before);
}

static void absent_names_and_advice_do_not_matter(void **state)
{
    (void)state;
    fake.rc[FAKE_NAME] = -EINVAL;
    fake.rc[FAKE_ADVISE] = -EINVAL;
    assert_int_equal(fl_vspace_reserve(&v, MIB(8), MIB(2), false, "t"), 0);
    assert_int_equal(fl_vspace_commit(&v, MIB(2)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reserve_aligns_and_gives_the_rest_back, each),
        cmocka_unit_test_setup(refused_reservation_leaves_nothing, each),
        cmocka_unit_test_setup(commit_goes_by_chunks_and_makes_memory_usable, each),
        cmocka_unit_test_setup(the_last_chunk_ends_with_the_span, each),
        cmocka_unit_test_setup(refused_chunk_falls_back_to_what_is_needed, each),
        cmocka_unit_test_setup(counted_span_maps_only_what_is_committed, each),
        cmocka_unit_test_setup(counted_span_tries_other_places_when_one_is_taken, each),
        cmocka_unit_test_setup(commit_onto_a_foreign_mapping_is_refused, each),
        cmocka_unit_test_setup(absent_names_and_advice_do_not_matter, each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
