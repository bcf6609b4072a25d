/* faultstat record, judged from outside: a victim whose sites and counts are known. Needs perf
 * events; what is said without them is test_tools_record_proc's. */
#include "cases.h"
#include "child.h"

enum {
    FL_F_PAGES = 1000,
    FL_G_PAGES = 500,
    FL_C_PAGES = 300,
    FL_Z_PAGES = 400,
    FL_U_PAGES = 400,
    FL_K_BYTES = 16 << 20,
    FL_STEPS = 6
};

static char path[] = "/tmp/test_tools_record.XXXXXX";

#define RECORD(status, ...)                                                                        \
    fl_child_ends(status, ARGV(FL_FAULTSTAT, "record", "-q", "-o", path, __VA_ARGS__), NULL)

/* What the last run wrote. */
static const json_t *recording(void)
{
    return fl_child_json_file(path);
}

/* Records victim_sites in that mode, each fault. */
static const json_t *record_each(const char *mode)
{
    RECORD(0, "-c", "1", "-s", "1024", "--", FL_SITES, "0", "0", mode);
    return recording();
}

/* Faults of a site, of one kind; "": of all. */
static double faults_of(const json_t *root, const char *site, const char *kind)
{
    const json_t *stack;
    size_t i;
    double faults = 0;
    json_array_foreach(json_object_get(root, "stacks"), i, stack)
    {
        json_int_t frame = json_integer_value(json_object_get(stack, "site"));
        json_int_t number = json_integer_value(json_object_get(stack, "kind"));
        const json_t *frames = json_object_get(root, "frames");
        const char *name =
            frame < 0 ? "" : fl_child_text(json_array_get(frames, (size_t)frame), "name");
        const char *its_kind = fl_child_text(fl_child_item(root, "kinds", (size_t)number), "name");
        if (strcmp(name, site) == 0 && (kind[0] == '\0' || strcmp(its_kind, kind) == 0)) {
            faults += fl_child_number(stack, "faults");
        }
    }
    return faults;
}

static void assert_within_1_percent(double value, double wanted)
{
    if (value < wanted * 0.99 || value > wanted * 1.01) {
        fail_msg("%.0f is not within 1 %% of %.0f", value, wanted);
    }
}

CASE(faults_are_put_down_to_the_functions_that_took_them)
{
    RECORD(0, "-c", "1", "-s", "1024", "--", FL_SITES);
    const json_t *root = recording();
    assert_within_1_percent(faults_of(root, "f", "anonymous 4 KiB"), FL_F_PAGES);
    assert_within_1_percent(faults_of(root, "g", "anonymous 4 KiB"), FL_G_PAGES);
    const json_t *faults = json_object_get(root, "faults");
    assert_int_equal((int)fl_child_number(faults, "lost_records"), 0);
    assert_int_equal((int)fl_child_number(faults, "broken_records"), 0);
}

/* In huge pages where the kernel gives any, else in base pages: the memory is the same. */
CASE(huge_pages_are_told_from_base_pages)
{
    const json_t *root = record_each("huge");
    double huge_len = fl_child_number(json_object_get(root, "machine"), "huge_page_bytes");
    double huge = faults_of(root, "k", "anonymous huge");
    double base = faults_of(root, "k", "anonymous 4 KiB");
    assert_within_1_percent(huge * huge_len + base * (double)sysconf(_SC_PAGESIZE), FL_K_BYTES);
}

static bool has_note(const json_t *root, const char *text)
{
    const json_t *note;
    size_t i;
    bool found = false;
    json_array_foreach(json_object_get(root, "notes"), i, note)
    {
        found = found || strstr(json_string_value(note), text) != NULL;
    }
    return found;
}

/* The read and the write of a page are a fault each, and cost differently. */
CASE(a_read_of_fresh_memory_is_told_from_a_write)
{
    const json_t *root = record_each("zero");
    if (has_note(root, "reads of fresh memory")) { /* takes CAP_PERFMON */
        assert_within_1_percent(faults_of(root, "z", "anonymous 4 KiB"), 2 * FL_Z_PAGES);
    } else {
        assert_within_1_percent(faults_of(root, "z", "zero page"), FL_Z_PAGES);
        assert_within_1_percent(faults_of(root, "z", "anonymous 4 KiB"), FL_Z_PAGES);
    }
}

CASE(copies_are_new_pages_unless_they_are_asked_for)
{
    const json_t *root = record_each("fork");
    assert_true(has_note(root, "--copies tells them apart"));
    assert_within_1_percent(faults_of(root, "c", "anonymous 4 KiB"), FL_C_PAGES);
    root = record_each("zero");
    assert_false(has_note(root, "copies of anonymous")); /* no process forked */
}

/* A copy by its own name where the tracepoint may be had; else as the anonymous page that it is. */
CASE(a_copy_on_write_is_told_where_it_can_be)
{
    RECORD(0, "-C", "-c", "1", "-s", "1024", "--", FL_SITES, "0", "0", "fork");
    const json_t *root = recording();
    bool is_told = !has_note(root, "copies of anonymous");
    assert_within_1_percent(faults_of(root, "c", is_told ? "copy on write" : "anonymous 4 KiB"),
                            FL_C_PAGES);
    assert_within_1_percent(faults_of(root, "f", "anonymous 4 KiB"), 2 * FL_F_PAGES);
}

/* The kind is not asked for: since Linux 6.7 the fault is a minor one, as of any anonymous page. */
CASE(memory_from_a_userfaultfd_handler_has_its_site)
{
    fl_child_run(ARGV(FL_FAULTSTAT, "record", "-q", "-o", path, "-c", "1", "-s", "1024", "--",
                      FL_SITES, "0", "0", "uffd"),
                 NULL);
    if (output.status == 4) {
        print_message("no userfaultfd here\n");
        skip();
    }
    const json_t *root = recording();
    assert_within_1_percent(faults_of(root, "u", ""), FL_U_PAGES);
}

CASE(a_thread_of_many_faults_is_sampled_in_proportion)
{
    RECORD(0, "-c", "19", "-s", "512", "--", FL_SITES, "0", "20000");
    const json_t *root = recording();
    assert_within_1_percent(faults_of(root, "h", ""), 40000);
}

CASE(counts_agree_with_getrusage)
{
    RECORD(0, "--", FL_SITES, "0", "20000");
    const json_t *root = recording();
    const json_t *faults = json_object_get(root, "faults");
    double all = fl_child_number(faults, "getrusage_minor");
    assert_true(all >= 41500);
    if (geteuid() == 0) { /* those in system calls too */
        assert_within_1_percent(fl_child_number(faults, "counted_minor"), all);
    }
}

CASE(steps_are_those_that_the_program_marks)
{
    RECORD(0, "-c", "1", "-s", "512", "--", FL_SITES, "6");
    const json_t *root = recording();
    const json_t *steps = json_object_get(root, "steps");
    assert_int_equal(json_array_size(steps), FL_STEPS);
    for (size_t i = 0; i < FL_STEPS; i++) {
        assert_within_1_percent(fl_child_number(json_array_get(steps, i), "faults"),
                                FL_F_PAGES + FL_G_PAGES);
    }
    const json_t *prediction = json_object_get(root, "prediction");
    assert_string_equal(fl_child_text(prediction, "of"), "a steady step");
    assert_within_1_percent(fl_child_number(prediction, "avoided_faults"), FL_F_PAGES + FL_G_PAGES);
    double low = fl_child_number(prediction, "faultless_cpu_low_ms");
    double middle = fl_child_number(prediction, "faultless_cpu_ms");
    double high = fl_child_number(prediction, "faultless_cpu_high_ms");
    assert_true(low <= middle && middle <= high);
    assert_true(high <= fl_child_number(prediction, "cpu_ms"));
    assert_true(json_array_size(json_object_get(json_object_get(root, "layout"), "points")) > 1000);
}

/* The first program runs the second: each in its own process. */
CASE(children_are_recorded_too)
{
    RECORD(3, "-c", "1", "-s", "1024", "--", "sh", "-c", FL_SITES "; " FL_SITES "; exit 3");
    const json_t *root = recording();
    assert_within_1_percent(faults_of(root, "f", ""), 2 * FL_F_PAGES);
}

CASE(nothing_is_predicted_of_what_ran_under_the_library)
{
    RECORD(0, "-c", "1", "--", FL_LAUNCHER, FL_SITES);
    const json_t *root = recording();
    assert_true(json_is_null(json_object_get(root, "prediction")));
    assert_says(json_string_value(fl_child_item(root, "notes", 0)), "it ran under faultless");
}

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0) {
        return 1;
    }
    close(fd);
    RECORD(0, "--", "true");
    const json_t *root = recording();
    bool has_perf = strcmp(fl_child_text(root, "method"), "perf") == 0;
    if (!has_perf) {
        printf("SKIP test_tools_record: needs perf events, got: %s\n",
               json_string_value(fl_child_item(root, "notes", 0)));
    }
    int status = has_perf ? RUN_CASES() : 77;
    unlink(path);
    return status;
}
