/* Tests of the region that are declared where they stand:
 *
 *   TEST(a_purge_empties_it)
 *   {
 *       give(take(MIB(2)));
 *       ...
 *   }
 *
 * Each begins by a set-up and ends by assert_guarded, which is no line of it then. They run in the
 * order of their lines; region_case.c has main. */
#ifndef FL_TESTS_UNIT_REGION_CASE_H
#define FL_TESTS_UNIT_REGION_CASE_H

#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

/* By plain_begin; by another set-up of cmocka's; where `where` says that it can be told. */
#define TEST(name) TEST_FROM(plain_begin, name)
#define TEST_FROM(set_up, name) TEST_WHERE(NULL, set_up, name)
#define TEST_WHERE(where, set_up, name)                                                            \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void note_##name(void)                                     \
    {                                                                                              \
        case_note(#name, name, set_up, where, __LINE__);                                           \
    }                                                                                              \
    static void name(void **state)

void case_note(const char *name, CMUnitTestFunction body, CMFixtureFunction set_up,
               bool (*where)(void), int line);

#endif
