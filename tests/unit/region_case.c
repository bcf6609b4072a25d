#include "unit/region_case.h"

#include <stdlib.h>

enum { MOST = 64 };

static struct noted {
    struct CMUnitTest test;
    bool (*where)(void);
    int line;
} noted[MOST];
static size_t nnoted;

static int end(void **state)
{
    assert_guarded();
    return 0;
}

void case_note(const char *name, CMUnitTestFunction body, CMFixtureFunction set_up,
               bool (*where)(void), int line)
{
    size_t i = nnoted++;

    if (nnoted > MOST) {
        abort();
    }
    for (; i > 0 && noted[i - 1].line > line; i--) {
        noted[i] = noted[i - 1];
    }
    noted[i] = (struct noted){{name, body, set_up, end, NULL}, where, line};
}

int main(void)
{
    static struct CMUnitTest tests[MOST];
    size_t n = 0;

    if (nnoted == 0) {
        print_error("no test is noted\n");
        return 1;
    }
    for (size_t i = 0; i < nnoted; i++) {
        if (noted[i].where == NULL || noted[i].where()) {
            tests[n++] = noted[i].test;
        } else {
            print_message("not here: %s\n", noted[i].test.name);
        }
    }
    return _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
}
