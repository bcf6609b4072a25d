/* The cases of a test program. CASE defines one and puts it on the list, RUN_CASES runs the list in
 * the order of the file:
 *
 *   CASE(split_keeps_total_length)
 *   {
 *       assert_int_equal(...);
 *   }
 *
 *   int main(void)
 *   {
 *       return RUN_CASES(.setup = begin);
 *   }
 *
 * The members of struct fl_case_fixtures are cmocka's fixtures, around each case or all of them. */
#ifndef FAULTLESS_TESTS_CASES_H
#define FAULTLESS_TESTS_CASES_H

#include "unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

enum { FL_CASES = 64 };

static struct {
    unsigned line[FL_CASES];
    struct CMUnitTest test[FL_CASES];
    size_t n;
} fl_cases;

struct fl_case_fixtures {
    CMFixtureFunction setup, teardown, group_setup, group_teardown;
};

/* The compiler may order constructors as it likes: the list is sorted by lines. */
static void fl_case_join(unsigned line, const char *name, CMUnitTestFunction f)
{
    size_t i = fl_cases.n++;

    if (i == FL_CASES) {
        abort();
    }
    for (; i > 0 && fl_cases.line[i - 1] > line; i--) {
        fl_cases.line[i] = fl_cases.line[i - 1];
        fl_cases.test[i] = fl_cases.test[i - 1];
    }
    fl_cases.line[i] = line;
    fl_cases.test[i] = (struct CMUnitTest){.name = name, .test_func = f};
}

static inline int fl_cases_run(struct fl_case_fixtures f)
{
    for (size_t i = 0; i < fl_cases.n; i++) {
        fl_cases.test[i].setup_func = f.setup;
        fl_cases.test[i].teardown_func = f.teardown;
    }
    return _cmocka_run_group_tests("cases", fl_cases.test, fl_cases.n, f.group_setup,
                                   f.group_teardown);
}

#define RUN_CASES(...) fl_cases_run((struct fl_case_fixtures){__VA_ARGS__})

#define CASE(name)                                                                                 \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_joins(void)                                    \
    {                                                                                              \
        fl_case_join(__LINE__, #name, name);                                                       \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

/* Ends the case unless `wanted` stands in `text`. */
static inline void assert_says(const char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL) {
        fail_msg("'%s' is not in:\n%s", wanted, text);
    }
}

#endif
