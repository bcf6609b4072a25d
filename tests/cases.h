/* The cases of a test program. CASE defines one and puts it on the list, CASES_MAIN is a main that
 * runs the list in the order of the file:
 *
 *   CASE(split_keeps_total_length)
 *   {
 *       assert_int_equal(...);
 *   }
 *
 *   CASES_MAIN(.setup = begin)
 *
 * CASE_IS(name, call) defines one that is that call alone: a row of a table. CASE_AFTER(set_up,
 * name) defines one with a set-up of its own, CASE_AGAIN(set_up, name) runs one that is there once
 * more, after another.
 *
 * RUN_CASES does the same in a main that has more to do. What runs around each case, or around all
 * of them, are the members of struct fl_case_fixtures; it may assert.
 *
 * With the headers that hardly a test does without. */
#ifndef FAULTLESS_TESTS_CASES_H
#define FAULTLESS_TESTS_CASES_H

#include "unit/cmocka_all.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FL_CASES = 64 };

struct fl_case_fixtures {
    void (*setup)(void), (*teardown)(void), (*group_setup)(void), (*group_teardown)(void);
};

static struct {
    unsigned line[FL_CASES];
    struct CMUnitTest test[FL_CASES];
    size_t n;
    struct fl_case_fixtures around;
} fl_cases;

/* The compiler may order constructors as it likes: the list is sorted by lines. */
static inline void fl_case_join(unsigned line, const char *name, CMUnitTestFunction f,
                                CMFixtureFunction set_up)
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
    fl_cases.test[i] = (struct CMUnitTest){.name = name, .test_func = f, .setup_func = set_up};
}

/* As cmocka calls the member of that name. */
#define FL_CASE_FIXTURE(name)                                                                      \
    static inline int fl_cases_##name(void **state)                                                \
    {                                                                                              \
        (void)state;                                                                               \
        if (fl_cases.around.name != NULL) {                                                        \
            fl_cases.around.name();                                                                \
        }                                                                                          \
        return 0;                                                                                  \
    }
FL_CASE_FIXTURE(setup)
FL_CASE_FIXTURE(teardown)
FL_CASE_FIXTURE(group_setup)

/* What fails in it is not in what cmocka returns: it has not come to its end then. */
static bool fl_cases_torn;

static inline int fl_cases_group_teardown(void **state)
{
    (void)state;
    fl_cases_torn = true;
    if (fl_cases.around.group_teardown != NULL) {
        fl_cases.around.group_teardown();
    }
    fl_cases_torn = false;
    return 0;
}

static inline int fl_cases_run(struct fl_case_fixtures around)
{
    if (fl_cases.n == 0) {
        fputs("no case is on the list\n", stderr);
        return 1;
    }
    fl_cases.around = around;
    for (size_t i = 0; i < fl_cases.n; i++) {
        if (fl_cases.test[i].setup_func == NULL) {
            fl_cases.test[i].setup_func = fl_cases_setup;
        }
        fl_cases.test[i].teardown_func = fl_cases_teardown;
    }
    int rc = _cmocka_run_group_tests("cases", fl_cases.test, fl_cases.n, fl_cases_group_setup,
                                     fl_cases_group_teardown);
    return rc | fl_cases_torn;
}

#define RUN_CASES(...) fl_cases_run((struct fl_case_fixtures){__VA_ARGS__})

#define CASES_MAIN(...)                                                                            \
    int main(void)                                                                                 \
    {                                                                                              \
        return RUN_CASES(__VA_ARGS__);                                                             \
    }

#define FL_CASE_ENTRY(id, set_up, f, as)                                                           \
    __attribute__((constructor)) static void id(void)                                              \
    {                                                                                              \
        fl_case_join(__LINE__, as, f, set_up);                                                     \
    }

#define CASE_AFTER(set_up, name)                                                                   \
    static void name(void **state);                                                                \
    FL_CASE_ENTRY(name##_joins, set_up, name, #name)                                               \
    static void name(__attribute__((unused)) void **state)

#define CASE(name) CASE_AFTER(NULL, name)

#define CASE_IS(name, ...)                                                                         \
    CASE(name)                                                                                     \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

#define CASE_AGAIN(set_up, name)                                                                   \
    FL_CASE_ENTRY(name##_after_##set_up, set_up, name, #name "_after_" #set_up)

/* Ends the case unless `wanted` stands in `text`. */
static inline void assert_says(const char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL) {
        fail_msg("'%s' is not in:\n%s", wanted, text);
    }
}

struct fl_case_text {
    struct fl_case_text *before;
    char text[];
};

/* As printf would write it. It lives as long as the program. */
__attribute__((format(printf, 1, 2))) static inline const char *text_as(const char *format, ...)
{
    static struct fl_case_text *last;
    va_list more;

    va_start(more, format);
    int len = vsnprintf(NULL, 0, format, more);
    va_end(more);
    struct fl_case_text *w = malloc(sizeof *w + (size_t)len + 1);
    assert_true(len >= 0 && w != NULL);
    va_start(more, format);
    (void)vsnprintf(w->text, (size_t)len + 1, format, more);
    va_end(more);
    w->before = last;
    last = w;
    return w->text;
}

/* How often `part` stands in `text`. */
static inline size_t count_of(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++) {
        n++;
    }
    return n;
}

/* What is in a file, as far as there is room; its length. No such file ends the case. */
static inline size_t read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    size_t len = fread(text, 1, size - 1, file);
    text[len] = '\0';
    fclose(file);
    return len;
}

static inline void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#endif
