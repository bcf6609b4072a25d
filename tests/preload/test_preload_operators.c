/* C++ programs do under us what they do without: new and delete are those of the C++ library, of
 * the program, of a library or of the allocator behind us, and whichever come first there. */
#include "run.h"

/* NEXT stands behind us. */
struct row {
    const char *victim, *arg, *next;
    bool idle; /* nothing of it comes here */
};

/* `state`: rows, up to one without a victim. */
static void as_without_us(void **state)
{
    for (const struct row *row = *state; row->victim != NULL; row++) {
        const char *next = row->next != NULL ? row->next : "";
        print_message("           %s %s\n", row->victim, next);
        const struct fl_run *r =
            fl_run_same(&(struct fl_how){.argv = FL_ARGV(row->victim, row->arg),
                                         .preload = fl_in_order(FL_LIB_PATH, next)},
                        next);
        assert_true(r->out[0] != '\0');
        assert_true(row->idle || fl_run_stat(r, "requests") > 0);
    }
}

static void the_operators_of_an_allocator_behind_us_are_its_own(void **state)
{
    static const char *const nexts[] = {"", "libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                        FL_MIMALLOC};
    (void)state;
    for (size_t i = 0; i < sizeof nexts / sizeof nexts[0]; i++) {
        void *rows = (struct row[]){{"victim_new_mixed", NULL, nexts[i], false},
                                    {"victim_new_mixed", "free", nexts[i], false},
                                    {"victim_new_mixed", "delete", nexts[i], false},
                                    {NULL, NULL, NULL, false}};
        as_without_us(&rows);
    }
}

#define LIBRARY FL_VICTIM_DIR "/victim_own_new_lib.so"
#define SEEN(name, ...)                                                                            \
    FL_CASE(name, as_without_us, ((struct row[]){__VA_ARGS__, {NULL, NULL, NULL, false}}))

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEN(a_programs_own_operators_see_what_they_see_without_us, {.victim = "victim_own_new"},
             {.victim = "victim_new_pool", .idle = true}),
        /* the collector's libgccpp is such a library */
        SEEN(a_librarys_operators_see_what_they_see_without_us, {.victim = "victim_own_new_linked"},
             {.victim = "victim_own_new", .next = LIBRARY},
             {.victim = "victim_new_mixed", .next = LIBRARY}),
        /* loaded by a C program for itself alone */
        SEEN(a_plugins_operators_see_what_they_see_without_us,
             {.victim = "victim_plugin", .arg = LIBRARY}),
        SEEN(a_program_with_its_own_cxx_library_is_served, {.victim = "victim_new_mixed_static"},
             {.victim = "victim_new_mixed_static", .arg = "free"}),
        cmocka_unit_test(the_operators_of_an_allocator_behind_us_are_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
