/* The timeline: bounded, whole while threads write it, a fork's child's own; and as a Chrome
 * trace. */
#include "stats/stats.h"
#include "cases.h"

#include <pthread.h>

static char path[] = "/tmp/fl-timeline-XXXXXX";
static char text[8 << 20];

static void begin(void)
{
    int fd = mkstemp(path);
    fl_sys_boot();
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(fl_timeline_begin(), 0);
}

static void each(void)
{
    fl_timeline_fork_child(); /* as if nothing had been */
}

static void end(void)
{
    assert_int_equal(unlink(path), 0);
}

static void write_and_read(void)
{
    assert_int_equal(fl_timeline_write(path, 42, "a\"b"), 0);
    (void)read_text(path, text, sizeof text);
}

CASE(spans_and_moments_have_their_words)
{
    uint64_t from = fl_timeline_now();
    assert_true(from != 0);
    fl_timeline_span(FL_TIMELINE_STEP, from, 2 * 7 + 1);
    fl_timeline_span(FL_TIMELINE_MOVE, 0, 5); /* it began before there was a timeline */
    fl_timeline_moment(FL_TIMELINE_DROP, 3);
    write_and_read();
    assert_int_equal(count_of(text, "\"ph\":"), 3);
    assert_says(text, "\"args\":{\"name\":\"a\\\"b\",\"events left out before\":0}");
    assert_says(text, "{\"ph\":\"X\",\"name\":\"step\",\"pid\":42,");
    assert_says(text, "\"args\":{\"context\":7,\"planned\":1}}");
    assert_says(text, "{\"ph\":\"i\",\"name\":\"plan given up\"");
    assert_string_equal(text + strlen(text) - 4, "\n]}\n");
}

CASE(the_last_events_are_kept)
{
    char last[64];
    for (uint64_t i = 0; i < FL_TIMELINE_EVENTS + 100; i++) {
        fl_timeline_moment(FL_TIMELINE_PLAN, i);
    }
    write_and_read();
    assert_int_equal(count_of(text, "\"plan made\""), FL_TIMELINE_EVENTS);
    assert_says(text, "\"events left out before\":100}");
    assert_null(strstr(text, "\"bytes\":99}"));
    assert_says(text, "\"bytes\":100}");
    snprintf(last, sizeof last, "\"bytes\":%d}", FL_TIMELINE_EVENTS + 99);
    assert_says(text, last);
}

CASE(a_child_of_fork_has_its_own)
{
    fl_timeline_moment(FL_TIMELINE_PLAN, 1);
    fl_timeline_fork_child();
    fl_timeline_moment(FL_TIMELINE_PLAN, 2);
    write_and_read();
    assert_int_equal(count_of(text, "\"plan made\""), 1);
    assert_says(text, "\"bytes\":2}");
}

/* Value and length of each event belong together. */
static void *tell(void *arg)
{
    for (uint64_t i = 0; i < 2 * FL_TIMELINE_EVENTS; i++) {
        fl_timeline_add(FL_TIMELINE_PURGE, 1, (uint64_t)(uintptr_t)arg);
    }
    return NULL;
}

CASE(threads_write_it_while_it_is_read)
{
    pthread_t thread[3];
    for (uintptr_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, tell, (void *)(i + 1)), 0);
    }
    write_and_read();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    write_and_read();
    size_t written =
        count_of(text, "\"purge\""); /* one that was a whole ring late left its place to another */
    assert_in_range(written, FL_TIMELINE_EVENTS - 2, FL_TIMELINE_EVENTS);
    assert_int_equal(count_of(text, "\"bytes\":1}") + count_of(text, "\"bytes\":2}") +
                         count_of(text, "\"bytes\":3}"),
                     written);
    assert_int_equal(count_of(text, "\"ts\":0.001"), written);
}

CASES_MAIN(.setup = each, .group_setup = begin, .group_teardown = end)
