/* Options as they are read from an environment. */
#ifndef FL_TESTS_UNIT_OPTIONS_FIXTURE_H
#define FL_TESTS_UNIT_OPTIONS_FIXTURE_H

#include "core/core.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"

#include <string.h>

#define READ(...)                                                                                  \
    read_env((const char *[]){__VA_ARGS__, NULL},                                                  \
             sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static struct fl_options o;
static char *environment[16]; /* that was read last */

static void read_env(const char *const entries[], size_t n)
{
    for (size_t i = 0; i <= n; i++) {
        memcpy(&environment[i], &entries[i], sizeof environment[i]); /* as environ: not const */
    }
    fake_install();
    fl_options_read(&o, environment);
}

#endif
