/* The Chrome trace and the table of what is allocated, told by tracks that belong to no thread:
 * when samples are taken, what is written, what happens when the file is slow or refuses. No
 * driver. */
#include "gpu/driver/driver.h"
#include "gpu/trace/trace.h"
#include "unit/cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char written[16 << 20];
static size_t written_len;
static uint64_t clock_ns;
static int refusal;
static unsigned appends;

static int replace_file(const char *path, const void *data, size_t len)
{
    (void)path;
    memcpy(written, data, len);
    written_len = len;
    written[len] = '\0';
    return 0;
}

static int append_file(const char *path, const char *text, size_t len)
{
    (void)path;
    appends++;
    if (refusal != 0) {
        return refusal;
    }
    assert_true(written_len + len < sizeof written);
    memcpy(written + written_len, text, len);
    written_len += len;
    written[written_len] = '\0';
    return 0;
}

static uint64_t now_ns(void)
{
    return clock_ns;
}

static struct fl_gpu_track track;

static int each(void **state)
{
    (void)state;
    fl_sys = fl_sys_linux;
    fl_sys.now_ns = now_ns;
    fl_sys.replace_file = replace_file;
    fl_sys.append_file = append_file;
    clock_ns = 1000000000;
    refusal = 0;
    appends = 0;
    track = (struct fl_gpu_track){.kind = FL_GPU_TRACK_POOL, .device = 0, .target = FL_GPU_DEVICE};
    fl_gpu_track_open(&track);
    return 0;
}

static int end(void **state)
{
    (void)state;
    fl_gpu_track_close(&track);
    if (fl_gpu_is_traced()) {
        (void)fl_gpu_trace_end();
    }
    return 0;
}

static void tell(uint64_t at_us, uint64_t occupied)
{
    clock_ns = 1000000000 + at_us * 1000;
    fl_gpu_note_figures(&track, &(struct fl_gpu_figures){occupied, 10, 20, 30});
}

/* By hand: under a sanitizer strstr looks at all of the text each time. */
static unsigned count(const char *what)
{
    size_t len = strlen(what);
    unsigned n = 0;

    for (size_t i = 0; i + len <= written_len; i++) {
        n += written[i] == what[0] && memcmp(written + i, what, len) == 0;
    }
    return n;
}

static void has(const char *what)
{
    if (strstr(written, what) == NULL) {
        fail_msg("no %s in %s", what, written);
    }
}

/* A sample of the pool's first pair. */
static void has_sample(unsigned us, unsigned occupied)
{
    char text[256];

    snprintf(text, sizeof text,
             "\"ts\":1%06u.000,\"args\":{\"Occupied Pool Size\":%u,\"Free Pool Size\":10}}", us,
             occupied);
    has(text);
}

static void nothing_is_kept_without_a_trace(void **state)
{
    (void)state;
    assert_false(fl_gpu_is_traced());
    assert_int_equal(fl_gpu_note_now(), 0);
    tell(0, 1);
    assert_int_equal(fl_gpu_trace_end(), -EINVAL);
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    assert_int_equal(fl_gpu_trace_begin("u"), -EBUSY);
    assert_int_equal(fl_gpu_trace_end(), 0);
    assert_int_equal(count("Occupied"), 0);
    assert_int_equal(fl_gpu_trace_begin(NULL), -EINVAL);
    assert_int_equal(fl_gpu_trace_begin(""), -EINVAL);
}

static void an_event_of_each_kind_is_written_so(void **state)
{
    char text[512];
    (void)state;
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    tell(0, 7);
    fl_gpu_note_call("cuMemAlloc", clock_ns + 1, clock_ns + 2500, 4096, 2);
    clock_ns += 50000;
    fl_gpu_note_instant("collect", 3, 99);
    assert_int_equal(fl_gpu_trace_end(), 0);
    snprintf(text, sizeof text,
             "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
             "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":%d,"
             "\"args\":{\"name\":\"test_gpu_trace",
             getpid(), getpid());
    assert_int_equal(strncmp(written, text, strlen(text)), 0);
    snprintf(text, sizeof text,
             ",\n{\"ph\":\"C\",\"name\":\"GPU0 pool\",\"pid\":%d,\"tid\":%d,"
             "\"ts\":1000000.000,\"args\":{\"Occupied Pool Size\":7,"
             "\"Free Pool Size\":10}}",
             getpid(), gettid());
    has(text);
    has("\"GPU0 served\"");
    has("{\"Memory Allocated from Pool\":20,\"Memory Allocated from CUDA API\":30}");
    has("\"name\":\"thread_name\"");
    has("\"ph\":\"X\",\"name\":\"cuMemAlloc\"");
    has("\"ts\":1000000.001,\"dur\":2.499,\"args\":{\"bytes\":4096,\"result\":2}}");
    has("\"ts\":1000050.000,\"s\":\"p\",\"args\":{\"device\":3,\"value\":99}}");
    assert_string_equal(written + written_len - 4, "\n]}\n");
}

static void samples_are_a_tenth_of_a_millisecond_apart(void **state)
{
    (void)state;
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    tell(0, 1);
    tell(10, 2);
    tell(20, 3);
    tell(99, 4);
    tell(100, 5);
    tell(150, 6); /* stands: seen where it may be, at 200 */
    tell(900, 7);
    tell(950, 7); /* no change */
    tell(960, 8); /* the last: written at the end */
    assert_int_equal(fl_gpu_trace_end(), 0);
    has_sample(0, 1);
    has_sample(100, 5);
    has_sample(200, 6);
    has_sample(900, 7);
    has_sample(1000, 8);
    assert_int_equal(count("Occupied Pool Size"), 5);
    assert_int_equal(count("Memory Allocated from Pool"), 5);
}

static void a_second_trace_begins_anew(void **state)
{
    (void)state;
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    tell(0, 1);
    assert_int_equal(fl_gpu_trace_end(), 0);
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    tell(1, 1); /* unchanged, but this trace does not know it */
    assert_int_equal(fl_gpu_trace_end(), 0);
    has_sample(1, 1);
    assert_int_equal(count("thread_name"), 1);
}

static void tracks_that_are_alike_have_numbers(void **state)
{
    struct fl_gpu_track second = {.kind = FL_GPU_TRACK_POOL, .device = 0},
                        pinned = {.kind = FL_GPU_TRACK_POOL, .target = FL_GPU_PINNED},
                        host = {.kind = FL_GPU_TRACK_COPIES, .device = -1}, third = second;
    const struct fl_gpu_figures f = {1, 2, 3, 4};
    (void)state;
    fl_gpu_track_open(&second);
    fl_gpu_track_open(&pinned);
    fl_gpu_track_open(&host);
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    fl_gpu_note_figures(&second, &f);
    fl_gpu_note_figures(&pinned, &f);
    fl_gpu_note_copies(&host, 3, 4096);
    fl_gpu_note_stall(&host, 12);
    fl_gpu_track_close(&second);
    fl_gpu_track_open(&third);
    assert_int_equal(third.number, 2); /* that is free again */
    fl_gpu_track_close(&third);
    fl_gpu_track_close(&pinned);
    fl_gpu_track_close(&host);
    assert_int_equal(fl_gpu_trace_end(), 0);
    has("\"GPU0 pool 2\"");
    has("\"GPU0 pinned pool\"");
    has("\"host copies\"");
    has("{\"Copies\":3,\"Stalls\":0}}");
    has("{\"Copied Bytes\":4096}}");
    has("{\"Copies\":3,\"Stalls\":1}}"); /* soon after, written when the track was closed */
    assert_int_equal(host.copies, 3);
    assert_int_equal(host.stall_ns, 12);
}

static void more_than_the_buffer_holds_is_written_as_it_comes(void **state)
{
    enum { MANY = 30000 };
    (void)state;
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    for (unsigned i = 0; i < MANY; i++) {
        fl_gpu_note_instant("many", 0, i);
    }
    assert_true(appends > 0);
    assert_int_equal(fl_gpu_trace_end(), 0);
    assert_int_equal(count("\"many\""), MANY);
    assert_int_equal(count("left out"), 0);
}

static void a_file_that_refuses_is_told_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    tell(0, 1);
    refusal = -ENOSPC;
    assert_int_equal(fl_gpu_trace_end(), -ENOSPC);
    refusal = 0;
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    assert_int_equal(fl_gpu_trace_end(), 0);
}

static void *tell_many(void *none)
{
    (void)none;
    for (unsigned i = 0; i < 20000; i++) {
        fl_gpu_note_instant("told", 0, i);
    }
    return NULL;
}

/* What is not written is counted: together they are all. */
static void threads_lose_nothing_uncounted(void **state)
{
    pthread_t thread[4];
    unsigned left_out = 0;
    (void)state;
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, tell_many, NULL), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
    }
    assert_int_equal(fl_gpu_trace_end(), 0);
    const char *left = strstr(written, "\"events\":");
    if (left != NULL) {
        assert_int_equal(sscanf(left, "\"events\":%u", &left_out), 1);
    }
    /* A thread's name may be left out, too. */
    assert_in_range(count("\"told\"") + left_out, 80000, 80004);
}

static void the_process_number_stands_for_percent_p(void **state)
{
    (void)state;
    assert_int_equal(fl_gpu_trace_begin("/nowhere/%p.json"), 0);
    assert_int_equal(fl_gpu_trace_end(), 0);
    char longest[FL_OPTION_TEXTS + 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(fl_gpu_trace_begin(longest), -EINVAL);
}

/* What the child says with: 0, or which of these was not so. */
static int as_a_child(void)
{
    char text[64];
    unsigned before = appends;

    fl_gpu_fork_child();
    if (fl_gpu_is_traced()) {
        return 1;
    }
    tell(500, 9);
    fl_gpu_stop();
    if (appends != before) {
        return 2;
    }
    /* The parent had no driver yet, so the child may have its own, and a trace. */
    if (fl_gpu_trace_begin("c") != 0) {
        return 3;
    }
    fl_gpu_note_instant("child", 0, 1);
    if (fl_gpu_trace_end() != 0) {
        return 4;
    }
    snprintf(text, sizeof text, "\"child\",\"pid\":%d,\"tid\":%d", getpid(), gettid());
    return strstr(written, text) != NULL ? 0 : 5;
}

static void a_child_leaves_its_parents_trace_alone(void **state)
{
    int status = 0;
    (void)state;
    assert_int_equal(fl_gpu_trace_begin("t"), 0);
    tell(0, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(as_a_child());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tell(300, 2);
    assert_int_equal(fl_gpu_trace_end(), 0);
    has_sample(300, 2);
}

static void live_blocks(void *owner, fl_gpu_live_fn *fn, void *arg)
{
    uint32_t *of = owner;

    fn(arg, &(struct fl_gpu_live){100, 512, of[1], false});
    fn(arg, &(struct fl_gpu_live){5, 256, 0, true});
    fn(arg, &(struct fl_gpu_live){4000, 4096, of[0], true});
    fn(arg, &(struct fl_gpu_live){4001, 4096, of[0], false});
}

static void the_table_has_a_line_for_each_block_by_its_tag(void **state)
{
    uint32_t tags[2];
    struct fl_gpu_track pool = {
        .device = 1, .owner = tags, .each = live_blocks, .kind = FL_GPU_TRACK_POOL};
    (void)state;
    assert_int_equal(fl_gpu_tag_now(), 0);
    fl_gpu_tag("conv1:weight");
    tags[0] = fl_gpu_tag_now();
    fl_gpu_tag("a \"b\"");
    tags[1] = fl_gpu_tag_now();
    fl_gpu_tag("conv1:weight");
    assert_int_equal(fl_gpu_tag_now(), tags[0]);
    fl_gpu_tag(NULL);
    assert_int_equal(fl_gpu_tag_now(), 0);
    assert_int_not_equal(tags[0], tags[1]);
    fl_gpu_track_open(&pool);
    assert_int_equal(fl_gpu_trace_csv("t"), 0);
    fl_gpu_track_close(&pool);
    assert_string_equal(
        written, "\"Attribute Name\",\"Requested Size\",\"Device\",\"Actual Size\",\"Reuse?\"\n"
                 "\"<unk>\",\"5\",\"1\",\"256\",\"1\"\n"
                 "\"a \"\"b\"\"\",\"100\",\"1\",\"512\",\"0\"\n"
                 "\"conv1:weight\",\"4001\",\"1\",\"4096\",\"0\"\n"
                 "\"conv1:weight\",\"4000\",\"1\",\"4096\",\"1\"\n");
    assert_int_equal(fl_gpu_trace_csv("t"), 0);
    assert_int_equal(count("\n"), 1);
    refusal = -ENOSPC;
    fl_gpu_track_open(&pool);
    assert_int_equal(fl_gpu_trace_csv("t"), -ENOSPC);
    fl_gpu_track_close(&pool);
    assert_int_equal(fl_gpu_trace_csv(""), -EINVAL);
}

static void tags_are_cut_and_their_number_is_bounded(void **state)
{
    char name[80];
    unsigned known = 0;
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    fl_gpu_tag(name);
    uint32_t first = fl_gpu_tag_now();
    name[70] = 'm'; /* behind the 63rd */
    fl_gpu_tag(name);
    assert_int_equal(fl_gpu_tag_now(), first);
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "tag %u", i);
        fl_gpu_tag(name);
        known += fl_gpu_tag_now() != 0;
    }
    assert_in_range(known, 3000, 3072);
    fl_gpu_tag("tag 0");
    assert_int_not_equal(fl_gpu_tag_now(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_kept_without_a_trace, each, end),
        cmocka_unit_test_setup_teardown(an_event_of_each_kind_is_written_so, each, end),
        cmocka_unit_test_setup_teardown(samples_are_a_tenth_of_a_millisecond_apart, each, end),
        cmocka_unit_test_setup_teardown(a_second_trace_begins_anew, each, end),
        cmocka_unit_test_setup_teardown(tracks_that_are_alike_have_numbers, each, end),
        cmocka_unit_test_setup_teardown(more_than_the_buffer_holds_is_written_as_it_comes, each,
                                        end),
        cmocka_unit_test_setup_teardown(a_file_that_refuses_is_told_at_the_end, each, end),
        cmocka_unit_test_setup_teardown(threads_lose_nothing_uncounted, each, end),
        cmocka_unit_test_setup_teardown(the_process_number_stands_for_percent_p, each, end),
        cmocka_unit_test_setup_teardown(a_child_leaves_its_parents_trace_alone, each, end),
        cmocka_unit_test_setup_teardown(the_table_has_a_line_for_each_block_by_its_tag, each, end),
        cmocka_unit_test_setup_teardown(tags_are_cut_and_their_number_is_bounded, each, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
