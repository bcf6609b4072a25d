/* What programs did to their blocks' pages is not there any more when the blocks have been
 * freed. */
#include "cases.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct fl_extent *before, *it, *after;

static int each(void **state)
{
    (void)plain_begin(state);
    before = take(KIB(64));
    it = take(MIB(7));
    after = take(KIB(256));
    fill(before, 1);
    fill(it, 2);
    fill(after, 3);
    return 0;
}

/* Which blocks were noted since the last look. */
enum { BEFORE = 1, IT = 2, AFTER = 4 };
static int noted(void)
{
    int which = (before->user_remapped ? BEFORE : 0) | (it->user_remapped ? IT : 0) |
                (after->user_remapped ? AFTER : 0);

    before->user_remapped = it->user_remapped = after->user_remapped = false;
    return which;
}

/* The program makes all of the block inaccessible, or read-only. */
static void protect(struct fl_extent *e, int how)
{
    note_remapped(e->base, e->len);
    assert_int_equal(mprotect(bytes(e), e->len, how), 0);
}

static void neighbours_are_untouched(void)
{
    assert_sound();
    assert_true(is_filled(before, 1));
    assert_true(is_filled(after, 3));
}

CASE_AFTER(each, blocks_are_found_by_what_a_range_touches)
{
    const size_t at[] = {0, KIB(4), MIB(3), MIB(7) - 1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        note_remapped(it->base + at[i], 1);
        assert_int_equal(noted(), IT);
        assert_sound();
    }
    note_remapped(before->base + KIB(60), KIB(4) + MIB(7) + 1);
    assert_int_equal(noted(), BEFORE | IT | AFTER);
}

CASE_AFTER(each, ranges_may_be_anything)
{
    note_remapped(0, region.space.first);
    note_remapped(it->base, 0);
    note_remapped(fl_range_end(region.space.window.all), MIB(2));
    note_remapped(after->base + MIB(512), MIB(2)); /* untouched so far */
    assert_int_equal(noted(), 0);
    for (uintptr_t from = 0; from < 2; from++) {
        note_remapped(from, SIZE_MAX);
        assert_int_equal(noted(), BEFORE | IT | AFTER);
    }
}

/* The pagemap's entries inside a block are what earlier extents left there. */
CASE_AFTER(each, stale_entries_do_not_mislead)
{
    struct fl_extent *part[7];
    give(it);
    for (size_t i = 0; i < 7; i++) {
        part[i] = take(MIB(1));
    }
    for (size_t i = 0; i < 7; i++) {
        give(part[i]);
    }
    it = take(MIB(7));
    struct fl_extent *other = take(MIB(1)); /* has a descriptor that was a part's */
    for (size_t at = 0; at < MIB(7); at += KIB(512)) {
        note_remapped(it->base + at, KIB(4));
        assert_int_equal(noted(), IT);
        assert_false(fl_extent_is_user_remapped(other));
    }
    assert_sound();
}

/* Pages that are brought in with the first ones: where new memory does not wait for its touch. */
enum { PAGEMAP_OF_SEED = 64 };

static size_t pagemap_resident(void)
{
    struct fl_range r = {region.space.pagemap.all.base, region.space.pagemap.grown};
    size_t got = 0;

    assert_int_equal(fl_sys_linux.resident(r, &got), 0);
    return got / fl_page.base;
}

/* The pagemap of a sparse giant is not brought into memory: what a call looks at shows there. */
static void note_all_over(size_t len, size_t most_had)
{
    enum { LOG_PAGES = 25 }; /* of 96 GiB */
    region_clear();
    fake.reserve_max = 4 * len;
    fake.memory_total = 2 * len;
    assert_int_equal(fl_region_start(&region, &(struct fl_region_config){.eager_max = MIB(1)}), 0);
    it = take(len);
    assert_non_null(it);
    assert_int_equal(it->content, FL_CONTENT_LAZY);
    size_t had = pagemap_resident();
    assert_in_range(had, 0, most_had);
    for (size_t i = 0; i < 64; i++) { /* from the end downwards */
        note_remapped(it->base + len - KIB(4) - i * (len / 64), KIB(4));
        assert_true(atomic_exchange(&it->user_remapped, false));
    }
    assert_in_range(pagemap_resident(), 0, had + (size_t)64 * LOG_PAGES);
    assert_sound();
}

/* The first waypoints are in the coarse map, those of a longer block in the pagemap, too. */
CASE_AFTER(each, a_note_looks_at_few_entries_however_long_the_block)
{
    size_t coarse = (size_t)FL_COARSE_ENTRIES * FL_COARSE_PAGES << fl_page.shift;

    note_all_over((size_t)8 << 30, PAGEMAP_OF_SEED + 2);
    note_all_over(coarse + coarse / 2, PAGEMAP_OF_SEED + 3);
}

CASE_AFTER(each, a_block_that_grew_is_found_from_its_new_end)
{
    const size_t lens[] = {MIB(7) + KIB(4), MIB(8), MIB(12) + KIB(20), MIB(33)};
    give(after);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        assert_true(fl_region_resize(&region, it, lens[i]));
        assert_sound();
        note_remapped(it->base + it->len - KIB(4), 1);
        assert_true((noted() & IT) != 0);
    }
}

CASE_AFTER(each, free_memory_takes_no_note)
{
    uintptr_t was = it->base;
    give(it);
    note_remapped(was + MIB(3), MIB(1));
    struct fl_extent *next = take(MIB(7));
    assert_true(next->base == was);
    assert_false(fl_extent_is_user_remapped(next));
    assert_sound();
}

/* Splits of huge pages, as the kernel was told of them; where the first one was. */
static unsigned splits_at(uintptr_t *first)
{
    unsigned n = 0;

    for (const struct fake_call *c; (c = in_window(FAKE_ADVISE, n)) != NULL; n++) {
        assert_int_equal(c->advice, FL_ADVICE_SPLIT);
        assert_int_equal(c->range.len, fl_page.base);
        *first = n == 0 ? c->range.base : *first;
    }
    return n;
}

/* Of a range that is lost at both ends of huge pages what lies between goes whole. */
CASE_AFTER(each, huge_pages_that_lose_a_part_are_split)
{
    uintptr_t whole = fl_align_up(it->base, MIB(2)), at = 0;
    const struct {
        struct fl_range lost;
        unsigned splits;
    } row[] = {{{whole + KIB(8), KIB(4)}, 1},
               {{whole, KIB(60)}, 1}, /* its beginning */
               {{whole + MIB(2) - KIB(60), KIB(60)}, 1},
               {{whole + MIB(1), MIB(4) - 1}, 2},
               {{whole, MIB(4)}, 0},
               {{whole, 0}, 0},
               {{whole + 1, KIB(4)}, 0}, /* EINVAL */
               {{0, KIB(64)}, 0},
               {{fl_range_end(region.space.window.all), MIB(1)}, 0},
               {{UINTPTR_MAX - 1, MIB(1)}, 0}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        print_message("row %zu\n", i);
        fake_forget();
        fl_region_note_dropped(&region, row[i].lost);
        assert_int_equal(splits_at(&at), row[i].splits);
        assert_true(row[i].splits == 0 || at == row[i].lost.base);
        assert_true(row[i].splits < 2 ||
                    in_window(FAKE_ADVISE, 1)->range.base == whole + MIB(5) - KIB(4));
        assert_int_equal(noted(), row[i].splits == 0 ? 0 : IT);
    }
    region.pages.huge = false;
    fake_forget();
    fl_region_note_dropped(&region, row[0].lost);
    assert_int_equal(splits_at(&at), 0);
}

/* As a signal handler amid our work frees: the next unlock does it. */
static void give_late(struct fl_extent *e)
{
    fl_region_lock(&region);
    assert_true(fl_extent_claim(e, region.epoch));
    fl_region_defer(&region, e);
    fl_region_unlock(&region);
}

CASE_AFTER(each, what_was_protected_is_writable_again)
{
    uintptr_t was = it->base;
    size_t whole = fl_range_inner(fl_extent_range(it), MIB(2)).len;
    for (int late = 0; late < 2; late++) {
        size_t populated = region.held.populated;
        protect(it, late != 0 ? PROT_READ : PROT_NONE);
        if (late != 0) {
            give_late(it);
        } else {
            give(it);
        }
        neighbours_are_untouched();
        assert_int_equal(region.held.populated, populated - whole);
        assert_int_equal(stats().in_use_bytes, KIB(320));
        it = take_zeroed(MIB(7));
        assert_true(it->base == was);
        assert_true(is_filled(it, 0));
        fill(it, 4);
        neighbours_are_untouched();
    }
}

CASE_AFTER(each, less_than_a_huge_page_stays_populated_memory)
{
    uintptr_t was = after->base;
    size_t populated = region.held.populated;
    protect(after, PROT_READ);
    give(after);
    assert_sound();
    assert_int_equal(region.held.populated, populated);
    after = take(KIB(256));
    assert_true(after->base == was);
    fill(after, 3);
    assert_true(is_filled(it, 2));
    neighbours_are_untouched();
}

CASE_AFTER(each, a_lazy_block_goes_back_whole)
{
    region.config.eager_max = MIB(1);
    struct fl_extent *lazy = take(MIB(32));
    assert_int_equal(lazy->content, FL_CONTENT_LAZY);
    uintptr_t was = lazy->base;
    size_t populated = region.held.populated, peak = region.held.populated_peak;
    fill(lazy, 5);
    protect(lazy, PROT_NONE);
    give(lazy);
    neighbours_are_untouched();
    assert_int_equal(region.held.populated, populated);
    assert_int_equal(region.held.populated_peak, peak);
    lazy = take(MIB(32));
    assert_true(lazy->base == was);
    assert_true(is_filled(lazy, 0));
}

/* By write(2)'s word. */
static bool is_readable(uintptr_t addr)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    bool is = write(ends[1], (const void *)addr, 1) == 1;
    (void)close(ends[0]);
    (void)close(ends[1]);
    return is;
}

CASE_AFTER(each, what_is_withheld_has_no_pages_and_no_successor)
{
    uintptr_t was = it->base;
    size_t populated = region.held.populated;
    assert_true(fl_extent_claim(it, region.epoch));
    assert_true(fl_region_withhold(&region, it));
    neighbours_are_untouched();
    assert_false(is_readable(was));
    assert_false(is_readable(was + MIB(7) - 1));
    /* nothing else is mapped there meanwhile */
    assert_ptr_equal(mmap((void *)was, KIB(4), PROT_READ,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                     MAP_FAILED);
    assert_int_equal(region.held.populated, populated - MIB(7));
    struct fl_extent *other = take(MIB(7));
    assert_true(other->base != was);
    assert_null(fl_region_find(&region, was));
    fl_region_give(&region, it);
    neighbours_are_untouched();
    it = take(MIB(7));
    assert_true(it->base == was);
    assert_true(is_filled(it, 0));
    assert_true(is_readable(was));
    neighbours_are_untouched();
}

CASE_AFTER(each, what_cannot_be_withheld_is_as_it_was)
{
    uintptr_t was = it->base;
    size_t populated = region.held.populated;
    fake.rc[FAKE_DECOMMIT] = -ENOMEM;
    assert_true(fl_extent_claim(it, region.epoch));
    assert_false(fl_region_withhold(&region, it));
    fake.rc[FAKE_DECOMMIT] = 0;
    assert_false(fl_extent_is_user_remapped(it));
    assert_true(is_filled(it, 2));
    assert_int_equal(region.held.populated, populated);
    fl_region_give(&region, it);
    it = take(MIB(7));
    assert_true(it->base == was);
    neighbours_are_untouched();
}

CASE_AFTER(each, realloc_neither_extends_nor_moves)
{
    give(after);
    note_remapped(it->base + MIB(1), KIB(4));
    assert_false(fl_region_resize(&region, it, MIB(7) + KIB(64)));
    assert_int_equal(it->len, MIB(7));
    assert_true(is_filled(it, 2));
    struct fl_extent *big = take(MIB(16));
    note_remapped(big->base, 1);
    assert_null(fl_region_move(&region, big, MIB(64)));
    assert_ptr_equal(fl_region_find(&region, big->base), big);
    assert_sound();
}

CASE_AFTER(each, realloc_gives_up_the_tail_as_new)
{
    uintptr_t was = it->base;
    note_remapped(it->base, MIB(7));
    assert_int_equal(mprotect(bytes(it) + MIB(1), MIB(6), PROT_NONE), 0);
    assert_true(fl_region_resize(&region, it, MIB(1)));
    assert_int_equal(it->len, MIB(1));
    assert_true(fl_extent_is_user_remapped(it));
    assert_true(is_filled(it, 2));
    neighbours_are_untouched();
    assert_int_equal(stats().in_use_bytes, MIB(1) + KIB(320));
    assert_int_equal(stats().live_extents, 3);
    struct fl_extent *next = take(MIB(6));
    assert_true(next->base == was + MIB(1));
    fill(next, 6);
    give(it);
    assert_true(is_filled(next, 6));
    neighbours_are_untouched();
}

static struct fl_range hidden;

static void hide_the_rest(struct fl_range r)
{
    hidden = (struct fl_range){r.base + KIB(64), r.len - KIB(64)};
    assert_int_equal(mprotect((void *)hidden.base, hidden.len, PROT_NONE), 0);
}

/* What a request has filled beyond itself is another thread's block before it is done. */
CASE_AFTER(each, who_populates_does_not_touch_what_others_may_have_hidden)
{
    give(it);
    give(before);
    give(after);
    (void)fl_region_purge(&region, 0);
    fake.on_populate = hide_the_rest;
    fake.rc[FAKE_POPULATE] = -EINVAL; /* as the kernel has it for what may not be written */
    struct fl_extent *e = take(KIB(64));
    fake.on_populate = NULL;
    fake.rc[FAKE_POPULATE] = 0;
    fill(e, 4);
    assert_int_equal(mprotect((void *)hidden.base, hidden.len, PROT_READ | PROT_WRITE), 0);
    give(e);
    assert_sound();
}

CASE_AFTER(each, what_the_kernel_does_not_unmap_is_in_no_block_any_more)
{
    struct fl_range was = fl_extent_range(it);
    note_remapped(it->base, 1);
    fake.rc[is_reserved() ? FAKE_DECOMMIT : FAKE_UNMAP] = -EPERM;
    give(it);
    fake.rc[is_reserved() ? FAKE_DECOMMIT : FAKE_UNMAP] = 0;
    neighbours_are_untouched();
    assert_int_equal(stats().live_extents, 2);
    assert_int_equal(stats().in_use_bytes, KIB(320));
    it = take(MIB(7));
    assert_int_equal(fl_range_common(fl_extent_range(it), was).len, 0);
    assert_null(fl_region_find(&region, was.base));
}

/* Each system call of a free is refused in turn: nothing is handed out twice, or without memory
 * behind it. */
CASE_AFTER(each, every_refusal_is_survived)
{
    unsigned n = 1, fired = 0;

    for (bool more = true; more; n++) {
        (void)each(state);
        note_remapped(it->base, 1);
        fake_fail_at(n, 1u << FAKE_UNMAP | 1u << FAKE_DECOMMIT | 1u << FAKE_MAP_AT |
                            1u << FAKE_COMMIT | 1u << FAKE_ADVISE | 1u << FAKE_NAME);
        give(it);
        more = fake_fired();
        fired += more;
        fake_fail_at(0, 0);
        neighbours_are_untouched();
        it = take(MIB(7));
        fill(it, 8);
        neighbours_are_untouched();
    }
    assert_true(fired >= 3); /* the unmapping, and the two edges' maps */
}

CASES_MAIN()
