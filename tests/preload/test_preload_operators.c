/* C++ programs do under us what they do without: new and delete are those of the C++ library, of
 * the program, of a library or of the allocator behind us, and whichever come first there. */
#include "run.h"

/* NEXT stands behind us. */
struct row {
    const char *victim, *arg, *next;
    bool idle; /* nothing of it comes here */
};

/* Rows, up to one without a victim. */
static void as_without_us(const struct row *row)
{
    for (; row->victim != NULL; row++) {
        const char *next = row->next != NULL ? row->next : "";
        const struct fl_run *r =
            fl_run_same(&(struct fl_how){.argv = FL_ARGV(row->victim, row->arg),
                                         .preload = fl_in_order(FL_LIB_PATH, next)},
                        next);
        assert_true(r->out[0] != '\0');
        assert_true(row->idle || fl_run_stat(r, "requests") > 0);
    }
}

#define LIBRARY FL_VICTIM_DIR "/victim_own_new_lib.so"
#define SEEN(name, ...)                                                                            \
    CASE_IS(name, as_without_us((const struct row[]){__VA_ARGS__, {.victim = NULL}}))

SEEN(a_programs_own_operators_see_what_they_see_without_us, {.victim = "victim_own_new"},
     {.victim = "victim_new_pool", .idle = true})
/* the collector's libgccpp is such a library */
SEEN(a_librarys_operators_see_what_they_see_without_us, {.victim = "victim_own_new_linked"},
     {.victim = "victim_own_new", .next = LIBRARY}, {.victim = "victim_new_mixed", .next = LIBRARY})
/* loaded by a C program for itself alone */
SEEN(a_plugins_operators_see_what_they_see_without_us, {.victim = "victim_plugin", .arg = LIBRARY})
SEEN(a_program_with_its_own_cxx_library_is_served, {.victim = "victim_new_mixed_static"},
     {.victim = "victim_new_mixed_static", .arg = "free"})

#define MIXED(next)                                                                                \
    {"victim_new_mixed", NULL, next, false}, {"victim_new_mixed", "free", next, false},            \
    {                                                                                              \
        "victim_new_mixed", "delete", next, false                                                  \
    }
SEEN(the_operators_of_an_allocator_behind_us_are_its_own, MIXED(""), MIXED("libjemalloc.so.2"),
     MIXED("libtcmalloc_minimal.so.4"), MIXED(FL_MIMALLOC))

CASES_MAIN()
