/* Every interposed name serves a large request, and says of it what its manual promises. */
#include "run.h"

static const char victim[] = "victim_names";

CASE(each_name_serves_a_large_request)
{
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
        const struct fl_run *r = FL_CLEAN(FL_ARGV(victim, modes[i]));
        assert_int_equal(fl_run_stat(r, "requests"), 1);
        assert_int_equal(fl_run_stat(r, "frees"), 1);
    }
}

CASE(malloc_stats_has_both_tables)
{
    const struct fl_run *r = FL_RUN(FL_ARGV(victim, "f_malloc_stats"));
    assert_int_equal(r->exit_status, 0);
    assert_says(r->err, "Arena 0:");
    assert_says(r->err, "faultless: requests 1 ");
    assert_says(r->err, "faultless: live: 0 bytes, 0 of these in memory\n");
    assert_says(r->err, "faultless: tables: ");
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

CASE(malloc_info_is_well_formed_and_names_us)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV(victim, "f_malloc_info"));
    assert_true(is_well_formed(r->out));
    assert_says(r->out, "<faultless extents=\"1\" ");
    assert_says(r->out, " live_resident=\"0\" ");         /* it waits for its touch */
    assert_false(is_well_formed("<malloc><a></malloc>")); /* the judge itself */
    assert_false(is_well_formed("<malloc></malloc><malloc></malloc>"));
}

CASE_IS(errno_is_what_glibc_leaves,
        fl_run_assert_active(fl_run_same(&(struct fl_how){.argv = FL_ARGV("victim_errno")}, "")))

/* glibc's malloc_stats is no cancellation point; its malloc_info is one, and frees the stream. */
CASE(a_cancelled_thread_leaves_the_streams_free)
{
    for (const char *const *mode = FL_ARGV("stats", "info", "numbers", "blocks"); *mode != NULL;
         mode++) {
        const struct fl_run *r = FL_RUN(FL_ARGV("victim_cancel", *mode));
        assert_int_equal(r->exit_status, 0);
        assert_says(r->err, "alive\n");
        assert_string_equal(r->out, fl_plain_run(FL_ARGV("victim_cancel", *mode))->out);
    }
}

#ifdef FL_HAVE_CXX
CASE(operators_new_and_delete_in_every_form)
{
    const struct fl_run *r = FL_CLEAN(FL_ARGV("victim_new", "every_form"));
    assert_true(fl_run_stat(r, "requests") >= 12);
    assert_true(fl_run_stat(r, "live_extents") <= 1); /* libstdc++'s emergency pool of 72 KiB */
}

CASE(impossible_sizes_throw_or_give_null)
{
    fl_run_modes("victim_new", FL_ARGV("bad_alloc", "new_handler"), NULL);
    fl_plain_modes("victim_new", FL_ARGV("bad_alloc", "new_handler"));
}

CASE(a_c_program_may_load_and_unload_cxx)
{
    const char *plugin = FL_VICTIM_DIR "/victim_plugin_new.so";
    FL_ACTIVE(FL_ARGV("victim_plugin", plugin));
    FL_ACTIVE(FL_ARGV("victim_plugin", plugin), FL_ENV("LD_BIND_NOW=1"));
}
#endif

CASES_MAIN()
