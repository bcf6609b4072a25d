/* Cases of a test program. Each says its set-up where it stands; all of a file run, in its order.
 *
 *   TEST(a_sentence) {...}
 *   TEST_AFTER(set_up, a_sentence) {...}
 *   TEST_AGAIN(set_up, a_sentence)       the same once more, after another set-up
 *   int main(void) { return run_cases(); }
 */
#ifndef FL_TESTS_UNIT_CASE_H
#define FL_TESTS_UNIT_CASE_H

#include "unit/cmocka_all.h"

enum { CASES_MOST = 64 };
static struct CMUnitTest case_table[CASES_MOST]; /* cmocka passes over what has no name */
static unsigned cases;

static inline void add_case(struct CMUnitTest c)
{
    assert_in_range(cases, 0, CASES_MOST - 1);
    case_table[cases++] = c;
}

/* Functions with that attribute run before main, in the order of the file. */
#define CASE_ENTRY(id, set_up, f, as)                                                              \
    __attribute__((constructor)) static void id(void)                                              \
    {                                                                                              \
        add_case((struct CMUnitTest){.name = (as), .test_func = (f), .setup_func = (set_up)});     \
    }

#define TEST_AFTER(set_up, f)                                                                      \
    static void f(void **state);                                                                   \
    CASE_ENTRY(f##_entry, set_up, f, #f)                                                           \
    static void f(void **state __attribute__((unused)))

#define TEST(f) TEST_AFTER(NULL, f)

#define TEST_AGAIN(set_up, f) CASE_ENTRY(f##_after_##set_up, set_up, f, #f "_after_" #set_up)

static inline int run_cases(void)
{
    return cmocka_run_group_tests(case_table, NULL, NULL);
}

#endif
