/* Small requests go to whatever allocator follows, large ones to us. Who has what, the allocators
 * tell themselves. */
#include "run.h"

/* Behind us, in the victim's mode. */
static const struct fl_run *with(const char *victim, const char *mode, const char *next)
{
    return FL_RUN(FL_ARGV(victim, mode), .preload = fl_in_order(FL_LIB_PATH, next));
}

static const char *usable(const struct fl_run *r)
{
    const char *p = strstr(r->out, "usable ");

    assert_non_null(p);
    return text_as("%.*s", (int)strcspn(p, "\n"), p);
}

static void follows(const char *victim, const char *next, const char *asked)
{
    const struct fl_run *r = fl_run_assert_active(with(victim, "family", next));
    assert_says(r->out, asked);
    assert_says(r->out, "small next\n");
    assert_says(r->out, "large other\n");
    /* the sizes that the next allocator rounds to are its own */
    const struct fl_run *alone = FL_CLEAN(FL_ARGV(victim), .preload = next[0] != '\0' ? next : "");
    assert_string_equal(usable(r), usable(alone));
    assert_says(alone->out, next[0] != '\0' || victim[11] != '\0' ? "large next\n" : "large ");
}

/* What stands behind us makes calls by syscall(3), which is ours: what the library moves itself is
 * no doing of the program's, so that it moves again when it grows again. */
CASE(pages_move_again_where_calls_are_made_by_number)
{
    if (fl_rung()[0] != '\0') {
        return; /* once is enough: pages move by mremap here */
    }
    const struct fl_run *r =
        FL_CLEAN(FL_ARGV("victim_next_moves"), .env = FL_ENV("FAULTLESS_DISABLE=move"),
                 .preload = FL_LIB_PATH " " FL_VICTIM_DIR "/victim_by_number.so");
    assert_true(atoi(r->out) >= 2);
}

/* dlsym does not find the names of libc_malloc_debug, a program's reference does. Under
 * glibc.malloc.check its sizes are exact. */
CASE(names_of_hidden_versions_follow)
{
    const char *const *env = FL_ENV("GLIBC_TUNABLES=glibc.malloc.check=3");
    const char *const debug = "libc_malloc_debug.so.0";
    const struct fl_run *r = FL_ACTIVE(FL_ARGV("victim_next", "family"),
                                       .preload = fl_in_order(FL_LIB_PATH, debug), .env = env);
    assert_string_equal(usable(r), "usable 33 1000");
    r = FL_CLEAN(FL_ARGV("victim_next"), .preload = debug, .env = env);
    assert_string_equal(usable(r), "usable 33 1000");
}

static const struct fl_run *partial(const char *shape, const char *before)
{
    const char *next = text_as("%s/victim_next_%s.so", FL_VICTIM_DIR, shape);

    return FL_RUN(FL_ARGV("victim_partial"), .preload = fl_in_order(before, next));
}

/* Without us libc would serve what it lacks, and it would be handed that block. */
CASE(an_allocator_without_aligned_names_is_not_mixed)
{
    const struct fl_run *r = fl_run_assert_active(partial("real", FL_LIB_PATH));
    assert_says(r->out, "malloc served 0: 1 1 0 1\n");
    assert_says(r->out, "\nmemalign refused 12: 0 0 0 0\n");
    assert_says(r->out, "\naligned_alloc refused 12: 0 0 0 0\n");
    assert_says(r->out, "\nposix_memalign refused 12: 0 0 0 0\n");
    assert_says(r->out, "\nvalloc refused 12: 0 0 0 0\n");
    assert_says(r->out, "\nusable 0\n");
}

CASE(aligned_names_of_one_allocator_stand_in_for_each_other)
{
    const struct fl_run *r = fl_run_assert_active(partial("real_posix", FL_LIB_PATH));
    assert_null(strstr(r->out, "refused"));
    assert_says(r->out, "\naligned_alloc served 0: 0 1 0 1\n");
    assert_says(r->out, "\nusable 0\n");
}

CASE(what_a_tracer_traces_is_not_mixed_either)
{
    const char *const next = FL_LIB_PATH " " FL_VICTIM_DIR "/victim_next_malloc.so";
    const struct fl_run *r = fl_run_assert_active(partial("real_posix", next));
    assert_null(strstr(r->out, "refused"));
    assert_says(r->out, "malloc served 0: 2 1 0 1\n"); /* both count in one array */
    assert_says(r->out, "\nmemalign served 0: 0 1 0 1\n");
}

/* glibc judges, whichever allocator follows. */
CASE(refusals_set_errno_as_glibc_does)
{
    const char *const nexts[] = {"",
                                 "libjemalloc.so.2",
                                 "libtcmalloc_minimal.so.4",
                                 FL_MIMALLOC,
                                 FL_VICTIM_DIR "/victim_next_real.so",
                                 FL_VICTIM_DIR "/victim_next_real_posix.so"};
    for (size_t i = 0; i < sizeof nexts / sizeof nexts[0]; i++) {
        (void)fl_run_same(&(struct fl_how){.argv = FL_ARGV("victim_partial", "refused"),
                                           .preload = fl_in_order(FL_LIB_PATH, nexts[i])},
                          "");
    }
}

CASE(a_free_in_a_handler_stays_out_of_the_next_allocator)
{
    const char *const preload = FL_LIB_PATH " " FL_VICTIM_DIR "/victim_locked_next.so";
    for (size_t i = 0; i < 3; i++) {
        const char *const mib[] = {"1", "40", "400"};
        FL_ACTIVE(FL_ARGV("victim_trapped", mib[i]), .preload = preload,
                  .env = FL_ENV("FAULTLESS_EAGER_MAX=64M"));
    }
}

static const struct fl_run *before_us(const char *first, const char *const *env)
{
    return FL_RUN(FL_ARGV("victim_next"), .preload = fl_in_order(first, FL_LIB_PATH), .env = env);
}

/* An allocator before us has every request: we serve none, and name it. A tracer passes them on. */
CASE(an_allocator_in_front_is_named)
{
    const struct fl_run *r = fl_run_assert_clean(before_us("libjemalloc.so.2", NULL));
    assert_int_equal(fl_run_stat(r, "active"), 0);
    r = before_us("libjemalloc.so.2", FL_ENV("FAULTLESS_STATS=table"));
    assert_says(r->err, "] victim_next: not served: the program's malloc is that of ");
    assert_says(r->err, "libjemalloc.so.2, which comes first\n");
    fl_run_assert_active(before_us(FL_VICTIM_DIR "/victim_next_malloc.so", NULL));
}

/* It passes small requests on: large ones would come here. */
CASE(a_tracer_in_front_takes_nothing_away)
{
    const char *tracer = FL_VICTIM_DIR "/victim_next_malloc.so";
    const struct fl_run *r =
        FL_RUN(FL_ARGV("/usr/bin/setsid", "/bin/ls", "/"),
               .preload = fl_in_order(tracer, FL_LIB_PATH), .env = FL_ENV("FAULTLESS_STATS=1"));
    assert_says(r->err, "] ls: nothing done: no request of 64K or more came here\n");
}

/* A helper that a launcher has put another allocator in front of: its parent's line looks well. */
CASE(a_helper_behind_an_allocator_says_so_once)
{
    static const char *const argv[] = {
        "/bin/sh", "-c", "LD_PRELOAD=libjemalloc.so.2:$LD_PRELOAD /bin/true; :", NULL};
    const struct fl_run *r = FL_RUN(argv, FL_ENV("FAULTLESS_STATS=1"));
    assert_int_equal(fl_run_lines(r->err), 1);
    assert_says(r->err, "] true: not served: ");
    r = FL_RUN(argv, FL_ENV("FAULTLESS_STATS=json"));
    assert_int_equal(fl_run_lines(r->err), 1);
    assert_says(r->err, "\"active\": 0");
    r = before_us("libjemalloc.so.2", FL_ENV("FAULTLESS_CONFIRM=1"));
    assert_says(r->err, "faultless: not served, unless that passes requests on: ");
    r = before_us("libjemalloc.so.2", NULL);
    assert_string_equal(r->err, "");
}

/* The last one looks before each block that it frees; before the window there is nothing to see, so
 * that it stands behind us alone. */
static const char *const shapes[] = {"malloc", "free", "both", "four", "header"};
enum { SHAPES = sizeof shapes / sizeof shapes[0], IN_FRONT = SHAPES - 1 };
static const char *const vias[] = {"", "_libc", "_handle"};
static const char *const firsts[] = {NULL, "malloc", "posix_memalign"};

/* As without us, and the tracer sees the same calls. Served is what comes through it or may reach
 * us when it is freed: all but what a tracer brings to libc itself. */
static void as_alone(const char *victim, const char *preload, const char *alone, bool served)
{
    size_t n = strstr(preload, "header") != NULL ? 1 : sizeof firsts / sizeof firsts[0];

    for (size_t i = fl_rung()[0] != '\0' && n > 1; i < n; i++) {
        const char *const *argv =
            firsts[i] == NULL ? FL_ARGV(victim) : FL_ARGV(victim, "first", firsts[i]);
        const struct fl_run *r =
            fl_run_same(&(struct fl_how){.argv = argv, .preload = preload}, alone);
        assert_true(!served || fl_run_stat(r, "requests") > 0);
    }
}

CASE(a_tracer_on_either_side_sees_what_it_does_without_us)
{
    for (size_t s = 0; s < SHAPES; s++) {
        for (size_t v = 0; v < sizeof vias / sizeof vias[0]; v++) {
            const char *tracer =
                text_as("%s/victim_next_%s%s.so", FL_VICTIM_DIR, shapes[s], vias[v]);
            as_alone("victim_partial", fl_in_order(FL_LIB_PATH, tracer), tracer, true);
            if (s < IN_FRONT) {
                as_alone("victim_partial", fl_in_order(tracer, FL_LIB_PATH), tracer,
                         vias[v][0] == '\0');
            }
        }
    }
}

CASE(a_program_with_some_names_of_its_own_does_what_it_does_without_us)
{
    for (size_t s = 0; s < IN_FRONT; s++) {
        for (size_t v = 0; v < sizeof vias / sizeof vias[0]; v++) {
            const char *via = vias[v][0] != '\0' ? vias[v] : "_next";
            as_alone(text_as("victim_partial_%s%s", shapes[s], via), FL_LIB_PATH, "",
                     vias[v][0] == '\0');
        }
    }
}

/* A stub in the program, which goes to our malloc, is no other malloc. */
CASE(a_program_that_takes_the_address_of_malloc_is_ours)
{
    const struct fl_run *r = FL_CLEAN(FL_ARGV("victim_address"));
    assert_int_equal(fl_run_stat(r, "active"), 1);
    r = FL_RUN(FL_ARGV("victim_address"), FL_ENV("FAULTLESS_STATS=table"));
    assert_says(r->err, "came here\n");
}

/* It has to see each block, and its wrappers of other functions are not ready at our start when it
 * is behind us. */
CASE(a_sanitizers_runtime_serves_all_as_without_us)
{
    static const char *const victims[] = {"victim_sanitized_leak", "victim_sanitized_thread"};

    for (size_t i = 0; i < sizeof victims / sizeof victims[0]; i++) {
        if (access(text_as("%s/%s", FL_VICTIM_DIR, victims[i]), X_OK) != 0 ||
            fl_plain_run(FL_ARGV(victims[i]))->exit_status != 0) {
            print_message("           %s cannot run here\n", victims[i]);
            continue;
        }
        const struct fl_run *r = FL_CLEAN(FL_ARGV(victims[i]));
        assert_string_equal(r->out, "through\n");
    }
}

CASE_IS(glibc_follows, follows("victim_next", "", "asked glibc\n"))
CASE_IS(jemalloc_follows, follows("victim_next", "libjemalloc.so.2", "asked jemalloc\n"))
CASE_IS(tcmalloc_follows, follows("victim_next", "libtcmalloc_minimal.so.4", "asked tcmalloc\n"))
CASE_IS(mimalloc_follows, follows("victim_next", FL_MIMALLOC, "asked mimalloc\n"))
#ifdef FL_HAVE_JEMALLOC
/* redis-server is such a program */
CASE_IS(a_program_linked_to_jemalloc_keeps_it,
        follows("victim_next_linked", "", "asked jemalloc\n"))
#endif

CASES_MAIN()
