/* C++ programs do under us what they do without: new and delete are those of the C++ library, of
 * the program, of a library or of the allocator behind us, and whichever come first there. */
#include "run.h"

static void same_as_without(const char *victim, const char *arg, const char *next, bool active)
{
    char preload[512];

    snprintf(preload, sizeof preload, "%s %s", FL_LIB_PATH, next);
    const struct fl_run *r =
        fl_run_how(&(struct fl_how){.argv = FL_ARGV(victim, arg), .preload = preload});
    if (active) {
        fl_run_assert_active(r);
    } else {
        fl_run_assert_clean(r);
    }
    const struct fl_run *alone =
        fl_run_how(&(struct fl_how){.argv = FL_ARGV(victim, arg), .preload = next});
    fl_run_assert_clean(alone);
    assert_true(alone->out[0] != '\0');
    assert_string_equal(r->out, alone->out);
}

static void a_programs_own_operators_see_what_they_see_without_us(void **state)
{
    (void)state;
    same_as_without("victim_own_new", NULL, "", true);
    same_as_without("victim_new_pool", NULL, "", false);
}

/* The collector's libgccpp is such a library. */
static void a_librarys_operators_see_what_they_see_without_us(void **state)
{
    (void)state;
    same_as_without("victim_own_new_linked", NULL, "", true);
    same_as_without("victim_own_new", NULL, FL_VICTIM_DIR "/victim_own_new_lib.so", true);
    same_as_without("victim_new_mixed", NULL, FL_VICTIM_DIR "/victim_own_new_lib.so", true);
}

/* Loaded by a C program for itself alone. */
static void a_plugins_operators_see_what_they_see_without_us(void **state)
{
    (void)state;
    same_as_without("victim_plugin", FL_VICTIM_DIR "/victim_own_new_lib.so", "", true);
}

static void a_program_with_its_own_cxx_library_is_served(void **state)
{
    (void)state;
    same_as_without("victim_new_mixed_static", NULL, "", true);
    same_as_without("victim_new_mixed_static", "free", "", true);
}

static void the_operators_of_an_allocator_behind_us_are_its_own(void **state)
{
    (void)state;
    static const char *const nexts[] = {"", "libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                        FL_MIMALLOC};
    for (size_t i = 0; i < sizeof nexts / sizeof nexts[0]; i++) {
        print_message("           %s\n", nexts[i]);
        same_as_without("victim_new_mixed", NULL, nexts[i], true);
        same_as_without("victim_new_mixed", "free", nexts[i], true);
        same_as_without("victim_new_mixed", "delete", nexts[i], true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_programs_own_operators_see_what_they_see_without_us),
        cmocka_unit_test(a_librarys_operators_see_what_they_see_without_us),
        cmocka_unit_test(a_plugins_operators_see_what_they_see_without_us),
        cmocka_unit_test(a_program_with_its_own_cxx_library_is_served),
        cmocka_unit_test(the_operators_of_an_allocator_behind_us_are_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
