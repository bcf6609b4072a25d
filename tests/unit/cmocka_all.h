/* cmocka's header with what it wants included before it. UNIT_TESTING stays undefined: it would
 * rename malloc. */
#ifndef FL_TESTS_UNIT_CMOCKA_ALL_H
#define FL_TESTS_UNIT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Each test gets a state, and few have one. To the end of the unit, as tests are defined there: a
 * push and a pop around this would leave nothing. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#endif
