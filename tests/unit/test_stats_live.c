/* How the live page is filled: what readers of another build rely on. */
#include "stats/live.h"
#include "cases.h"

static struct fl_live_page page;

static void clean(void)
{
    memset(&page, 0, sizeof page);
}

CASE(a_list_has_the_terms_that_come_with_it)
{
    static const struct fl_live_term term[] = {
        {.figure = FL_LIVE_STALLS, .width = 8},
        {.figure = FL_LIVE_LAZY, .width = 4, .offset = 8, .when = 12, .when_width = 1},
    };
    uint32_t word = 0;

    fl_live_add_word(&page, FL_LIVE_RUNG, &word, sizeof word);
    fl_live_add(&page, (struct fl_live_list){.at = 7, .count = 2, .size = 16, .next = 16}, term, 2);
    assert_int_equal(page.nlists, 2);
    assert_int_equal(page.nterms, 3);
    assert_int_equal(page.list[0].at, (uintptr_t)&word);
    assert_int_equal(page.list[0].size, sizeof word);
    assert_int_equal(page.list[0].count, 1);
    assert_int_equal(page.term[0].list, 0);
    assert_int_equal(page.term[0].when, FL_LIVE_ALWAYS);
    assert_int_equal(page.term[1].list, 1);
    assert_int_equal(page.term[1].when, FL_LIVE_ALWAYS);
    assert_int_equal(page.term[2].list, 1);
    assert_int_equal(page.term[2].when, 12);
}

CASE(what_has_no_room_is_left_out_whole)
{
    static const struct fl_live_term term[FL_LIVE_TERMS - FL_LIVE_LISTS + 2];
    uint64_t word = 0;

    for (int i = 0; i < FL_LIVE_LISTS - 1; i++) {
        fl_live_add_word(&page, FL_LIVE_LAZY, &word, sizeof word);
    }
    fl_live_add(&page, (struct fl_live_list){.size = 8}, term, sizeof term / sizeof term[0]);
    assert_int_equal(page.nlists, FL_LIVE_LISTS - 1);
    assert_int_equal(page.nterms, FL_LIVE_LISTS - 1);
    fl_live_add(&page, (struct fl_live_list){.size = 8}, term, sizeof term / sizeof term[0] - 1);
    assert_int_equal(page.nterms, FL_LIVE_TERMS);
    fl_live_add_word(&page, FL_LIVE_LAZY, &word, sizeof word);
    assert_int_equal(page.nlists, FL_LIVE_LISTS);
    assert_int_equal(page.nterms, FL_LIVE_TERMS);
}

CASE(a_page_is_none_until_it_is_published)
{
    assert_int_equal(page.magic[0], 0);
    fl_live_publish(&page, "12.34.56-a-name-that-is-too-long");
    assert_string_equal(page.magic, FL_LIVE_MAGIC);
    assert_int_equal(page.version, FL_LIVE_VERSION);
    assert_int_equal(page.size, sizeof page);
    assert_int_equal(page.lists, 48);
    assert_int_equal(page.terms, 48 + 32 * FL_LIVE_LISTS);
    assert_string_equal(page.library, "12.34.56-a-name");
}

CASES_MAIN(.setup = clean)
