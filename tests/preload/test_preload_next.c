/* Small requests go to whatever allocator follows, large ones to us. Who has what, the allocators tell themselves. */
#include "run.h"

#include <stdlib.h>

static const struct fl_run *with(const char *victim, const char *next)
{
    char preload[512];

    snprintf(preload, sizeof preload, "%s %s", FL_LIB_PATH, next);
    return fl_run_how(&(struct fl_how){.argv = FL_ARGV(victim, "family"), .preload = preload});
}

static const char *usable(const struct fl_run *r)
{
    static char line[2][64];
    static unsigned turn;
    const char *p = strstr(r->out, "usable ");

    assert_non_null(p);
    snprintf(line[turn % 2], sizeof line[0], "%.*s", (int)strcspn(p, "\n"), p);
    return line[turn++ % 2];
}

static void check(const char *victim, const char *next, const char *asked)
{
    const struct fl_run *r = with(victim, next);

    fl_run_assert_active(r);
    assert_non_null(strstr(r->out, asked));
    assert_non_null(strstr(r->out, "small next\n"));
    assert_non_null(strstr(r->out, "large other\n"));
    /* the sizes that the next allocator rounds to are its own */
    const struct fl_run *alone = fl_run_how(
        &(struct fl_how){.argv = FL_ARGV(victim), .preload = next[0] != '\0' ? next : ""});
    fl_run_assert_clean(alone);
    assert_string_equal(usable(r), usable(alone));
    assert_non_null(
        strstr(alone->out, next[0] != '\0' || victim[11] != '\0' ? "large next\n" : "large "));
}

static void glibc_follows(void **state)
{
    (void)state;
    check("victim_next", "", "asked glibc\n");
}

static void jemalloc_follows(void **state)
{
    (void)state;
    check("victim_next", "libjemalloc.so.2", "asked jemalloc\n");
}

static void tcmalloc_follows(void **state)
{
    (void)state;
    check("victim_next", "libtcmalloc_minimal.so.4", "asked tcmalloc\n");
}

static void mimalloc_follows(void **state)
{
    (void)state;
    check("victim_next", "libmimalloc.so.2", "asked mimalloc\n");
}

#ifdef FL_HAVE_JEMALLOC
/* redis-server is such a program. */
static void a_program_linked_to_jemalloc_keeps_it(void **state)
{
    (void)state;
    check("victim_next_linked", "", "asked jemalloc\n");
}
#endif

static void a_free_in_a_handler_stays_out_of_the_next_allocator(void **state)
{
    (void)state;
    const char *const preload = FL_LIB_PATH " " FL_VICTIM_DIR "/victim_locked_next.so";
    for (size_t i = 0; i < 3; i++) {
        const char *const mib[] = {"1", "40", "400"};
        print_message("           %s MiB\n", mib[i]);
        fl_run_assert_active(
            fl_run_how(&(struct fl_how){.argv = FL_ARGV("victim_trapped", mib[i]),
                                        .preload = preload,
                                        .env = FL_ENV("FAULTLESS_EAGER_MAX=64M")}));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(glibc_follows),
        cmocka_unit_test(jemalloc_follows),
        cmocka_unit_test(tcmalloc_follows),
        cmocka_unit_test(mimalloc_follows),
#ifdef FL_HAVE_JEMALLOC
        cmocka_unit_test(a_program_linked_to_jemalloc_keeps_it),
#endif
        cmocka_unit_test(a_free_in_a_handler_stays_out_of_the_next_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
