/* Every interposed name serves a large request, and says of it what its manual promises. */
#include "run.h"

static const char victim[] = "victim_names";

static void each_name_serves_a_large_request(void **state)
{
    (void)state;
    static const char *const modes[] = {
#define MODE_FOUR(name) "f_" #name,
#define MODE_REST MODE_FOUR
#define MODE_OVER MODE_FOUR
#define MODE_LIBC MODE_FOUR
#define MODE_TELL(name) /* they have tests of their own */
#define X(kind, name, slot, version) MODE_##kind(name)
#include "runtime/names.def"
#undef X
    };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        print_message("           %s\n", modes[i]);
        const struct fl_run *r = fl_preload_run(FL_ARGV(victim, modes[i]), NULL);
        fl_run_assert_clean(r);
        assert_int_equal(fl_run_stat(r, "requests"), 1);
        assert_int_equal(fl_run_stat(r, "frees"), 1);
    }
}

static void malloc_stats_has_both_tables(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV(victim, "f_malloc_stats"), NULL);
    assert_int_equal(r->exit_status, 0);
    assert_non_null(strstr(r->err, "Arena 0:"));
    assert_non_null(strstr(r->err, "faultless: requests 1 "));
    assert_non_null(strstr(r->err, "faultless: live: 0 bytes, 0 of these in memory\n"));
    assert_non_null(strstr(r->err, "faultless: tables: "));
}

/* Enough of XML for malloc_info: tags, attributes in quotes, text. Every element ends where it
 * should. */
static bool is_well_formed(const char *xml)
{
    const char *open[16];
    size_t depth = 0, roots = 0;

    while ((xml = strchr(xml, '<')) != NULL) {
        const char *name = xml + 1, *end = name;
        bool closing = *name == '/';
        for (bool quoted = false; *end != '\0' && (quoted || *end != '>'); end++) {
            quoted ^= *end == '"';
            if (!quoted && *end == '<') {
                return false;
            }
        }
        if (*end == '\0' || (depth == 0 && roots > 0)) {
            return false;
        }
        if (closing) {
            size_t len = strcspn(name + 1, "> ");
            if (depth == 0 || strncmp(open[--depth], name + 1, len) != 0 ||
                strcspn(open[depth], "> /") != len) {
                return false;
            }
            roots += depth == 0;
        } else if (end[-1] != '/') {
            if (depth == 16) {
                return false;
            }
            open[depth++] = name;
        }
        xml = end;
    }
    return depth == 0 && roots == 1;
}

static void malloc_info_is_well_formed_and_names_us(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV(victim, "f_malloc_info"), NULL);
    fl_run_assert_active(r);
    assert_true(is_well_formed(r->out));
    assert_non_null(strstr(r->out, "<faultless extents=\"1\" "));
    assert_non_null(strstr(r->out, " live_resident=\"0\" ")); /* it waits for its touch */
    assert_false(is_well_formed("<malloc><a></malloc>"));     /* the judge itself */
    assert_false(is_well_formed("<malloc></malloc><malloc></malloc>"));
}

static void errno_is_what_glibc_leaves(void **state)
{
    (void)state;
    fl_run_assert_active(fl_run_same(&(struct fl_how){.argv = FL_ARGV("victim_errno")}, ""));
}

/* glibc's malloc_stats is no cancellation point; its malloc_info is one, and frees the stream. */
static void a_cancelled_thread_leaves_the_streams_free(void **state)
{
    (void)state;
    for (const char *const *mode = FL_ARGV("stats", "info", "numbers", "blocks"); *mode != NULL;
         mode++) {
        print_message("           %s\n", *mode);
        const struct fl_run *r = fl_preload_run(FL_ARGV("victim_cancel", *mode), NULL);
        assert_int_equal(r->exit_status, 0);
        assert_non_null(strstr(r->err, "alive\n"));
        assert_string_equal(r->out, fl_plain_run(FL_ARGV("victim_cancel", *mode))->out);
    }
}

#ifdef FL_HAVE_CXX
static void operators_new_and_delete_in_every_form(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_new", "every_form"), NULL);
    fl_run_assert_clean(r);
    assert_true(fl_run_stat(r, "requests") >= 12);
    assert_true(fl_run_stat(r, "live_extents") <= 1); /* libstdc++'s emergency pool of 72 KiB */
}

static void impossible_sizes_throw_or_give_null(void **state)
{
    (void)state;
    fl_run_modes("victim_new", FL_ARGV("bad_alloc", "new_handler"), NULL);
    fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_new", "bad_alloc"))); /* the victim itself */
    fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_new", "new_handler")));
}

static void a_c_program_may_load_and_unload_cxx(void **state)
{
    (void)state;
    const char *plugin = FL_VICTIM_DIR "/victim_plugin_new.so";
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_plugin", plugin), NULL));
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_plugin", plugin), FL_ENV("LD_BIND_NOW=1")));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_serves_a_large_request),
        cmocka_unit_test(malloc_stats_has_both_tables),
        cmocka_unit_test(malloc_info_is_well_formed_and_names_us),
        cmocka_unit_test(errno_is_what_glibc_leaves),
        cmocka_unit_test(a_cancelled_thread_leaves_the_streams_free),
#ifdef FL_HAVE_CXX
        cmocka_unit_test(operators_new_and_delete_in_every_form),
        cmocka_unit_test(impossible_sizes_throw_or_give_null),
        cmocka_unit_test(a_c_program_may_load_and_unload_cxx),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
