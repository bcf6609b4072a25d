/* Spans of addresses: claimed with nothing mapped or reserved, committed in parts, grown from the
 * front. */
#include "core/core.h"
#include "cases.h"
#include "unit/fake_sys.h"

#define MIB(n) ((size_t)(n) << 20)

static struct fl_vspace v;

static void each(void)
{
    fake_install();
    fake.no_quiet_addresses = false; /* each test picks addresses of its own */
    memset(&v, 0, sizeof v);
}

/* Where nothing is mapped, and sanitizers allow memory. */
static uintptr_t free_addresses(void)
{
    uintptr_t base;

    assert_int_equal(fl_sys_linux.reserve(MIB(16), &base), 0);
    assert_int_equal(fl_sys_linux.unmap((struct fl_range){base, MIB(16)}), 0);
    return fl_align_up(base, MIB(2));
}

static void claim_anywhere(void)
{
    assert_int_equal(fl_vspace_claim(&v, MIB(8), MIB(2), 0, "t"), 0);
}

static struct fl_range part(size_t from, size_t len)
{
    return (struct fl_range){v.all.base + from, len};
}

CASE(claim_anywhere_aligns_and_gives_the_rest_back)
{
    claim_anywhere();
    assert_true(v.reserved);
    assert_int_equal(v.all.base % MIB(2), 0);
    assert_int_equal(v.all.len, MIB(8));
    assert_int_equal(fake_mapped(), MIB(8));
    assert_int_equal(fake_usable(), 0);
    fl_vspace_release(&v);
    assert_int_equal(fake_mapped(), 0);
    assert_int_equal(v.all.len, 0);
}

CASE(claim_at_an_address_maps_nothing)
{
    uintptr_t at = free_addresses();
    assert_int_equal(fl_vspace_claim(&v, MIB(8), MIB(2), at, "t"), 0);
    assert_false(v.reserved);
    assert_true(v.all.base == at && v.all.len == MIB(8));
    assert_int_equal(fake_mapped(), 0);
    fl_vspace_release(&v);
    assert_int_equal(v.all.len, 0);
}

CASE(claim_of_a_taken_address_is_refused)
{
    struct fl_range theirs = {free_addresses(), MIB(2)};
    assert_int_equal(fl_sys_linux.map_at(theirs), 0);
    assert_int_equal(fl_vspace_claim(&v, MIB(8), MIB(2), theirs.base, "t"), -EEXIST);
    assert_int_equal(v.all.len, 0);
    assert_int_equal(fl_sys_linux.unmap(theirs), 0);
}

CASE(refused_claim_leaves_nothing)
{
    fake.reserve_max = MIB(4);
    assert_int_equal(fl_vspace_claim(&v, MIB(8), MIB(2), 0, "t"), -ENOMEM);
    assert_int_equal(v.all.len, 0);
    assert_int_equal(fake_mapped(), 0);
}

CASE(parts_become_memory_and_cease_to_be)
{
    for (int reserved = 0; reserved < 2; reserved++) {
        assert_int_equal(
            fl_vspace_claim(&v, MIB(8), MIB(2), reserved != 0 ? 0 : free_addresses(), "t"), 0);
        size_t idle = reserved != 0 ? MIB(8) : 0;
        struct fl_range p = part(MIB(4), MIB(2));
        assert_int_equal(fl_vspace_commit(&v, p, true), 0);
        memset((void *)p.base, 1, p.len);
        assert_int_equal(fake_usable(), MIB(2));
        assert_int_equal(fl_vspace_decommit(&v, p), 0);
        assert_int_equal(fake_usable(), 0);
        assert_int_equal(fake_mapped(), idle);
        assert_int_equal(fl_vspace_commit(&v, p, true), 0);
        assert_int_equal(*(unsigned char *)p.base, 0);
        assert_int_equal(fl_vspace_decommit(&v, p), 0);
        fl_vspace_release(&v);
    }
}

CASE(a_refused_commit_says_whether_others_are_in_the_way)
{
    claim_anywhere();
    fake.commit_max = MIB(1);
    assert_int_equal(fl_vspace_commit(&v, part(0, MIB(2)), true), -ENOMEM);
    fl_vspace_release(&v);
    fake.commit_max = SIZE_MAX;
    assert_int_equal(fl_vspace_claim(&v, MIB(8), MIB(2), free_addresses(), "t"), 0);
    fake.rc[FAKE_MAP_AT] = -EEXIST; /* another mapping came there since */
    assert_int_equal(fl_vspace_commit(&v, part(0, MIB(2)), true), -EEXIST);
    fake.rc[FAKE_MAP_AT] = -EPERM; /* below vm.mmap_min_addr, say: addresses that do not exist */
    assert_int_equal(fl_vspace_commit(&v, part(0, MIB(2)), true), -ENOMEM);
    assert_int_equal(fake_usable(), 0);
}

CASE(growth_goes_by_chunks)
{
    claim_anywhere();
    assert_int_equal(fl_vspace_grow(&v, 1), 0);
    size_t chunk = v.grown;
    assert_in_range(chunk, 4096, MIB(2));
    assert_int_equal(fl_vspace_grow(&v, chunk), 0);
    assert_int_equal(fake.count[FAKE_COMMIT], 1);
    assert_int_equal(fl_vspace_grow(&v, chunk + 1), 0);
    assert_int_equal(v.grown, 2 * chunk);
    assert_true(fake_nth(FAKE_COMMIT, 1)->range.base == v.all.base + chunk);
    assert_int_equal(fake_nth(FAKE_COMMIT, 1)->range.len, chunk);
    memset((void *)v.all.base, 1, 2 * chunk);
    assert_int_equal(fl_vspace_grow(&v, MIB(8)), 0);
    assert_int_equal(fl_vspace_grow(&v, MIB(8) + 1), -ENOMEM);
    assert_int_equal(v.grown, MIB(8));
}

CASE(growth_falls_back_to_what_is_needed)
{
    claim_anywhere();
    fake.commit_max = 8192;
    assert_int_equal(fl_vspace_grow(&v, 5000), 0);
    assert_int_equal(v.grown, 8192);
    assert_int_equal(fake.count[FAKE_COMMIT], 2);
    fake.commit_max = 4096;
    assert_int_equal(fl_vspace_grow(&v, MIB(3)), -ENOMEM);
    assert_int_equal(v.grown, 8192);
}

CASE(advice_is_that_of_each_commit)
{
    claim_anywhere();
    assert_int_equal(fl_vspace_commit(&v, part(0, MIB(2)), true), 0);
    assert_int_equal(fl_vspace_commit(&v, part(MIB(2), MIB(2)), false), 0);
    fl_vspace_release(&v);
    claim_anywhere();
    assert_int_equal(fl_vspace_grow(&v, 1), 0); /* metadata never takes a huge page */
    assert_int_equal(fake_nth(FAKE_ADVISE, 0)->advice, FL_ADVICE_HUGE);
    assert_int_equal(fake_nth(FAKE_ADVISE, 1)->advice, FL_ADVICE_NO_HUGE);
    assert_int_equal(fake_nth(FAKE_ADVISE, 2)->advice, FL_ADVICE_NO_HUGE);
}

CASE(absent_names_and_advice_do_not_matter)
{
    fake.rc[FAKE_NAME] = -EINVAL;
    fake.rc[FAKE_ADVISE] = -EINVAL;
    claim_anywhere();
    assert_int_equal(fl_vspace_commit(&v, part(0, 4096), true), 0);
    assert_int_equal(fl_vspace_commit(&v, part(4096, 4096), true), 0);
    assert_int_equal(fake.count[FAKE_NAME], 1); /* not asked again where there are none */
}

CASES_MAIN(.setup = each)
