/* However a program ends: its output, its exit status and the order of its handlers are those under
 * glibc. */
#include "host.h"

static const char *const companions[] = {"none", "small", "large"};
static const char *const requests[] = {"none", "few", "once", "busy", "quiet"};
enum { REQUESTS = sizeof requests / sizeof requests[0], SECONDS = 60 };

/* What its helper thread is doing then depends on when free memory is to go back. */
static const char *decay_for(const char *request)
{
    return strcmp(request, "busy") == 0    ? "FAULTLESS_DECAY_MS=4"
           : strcmp(request, "quiet") == 0 ? "FAULTLESS_DECAY_MS=20"
                                           : "FAULTLESS_DECAY_MS=10000";
}

static void run_row(const char *way, const char *companion, const char *request,
                    struct fl_host_tally *tally)
{
    static struct fl_run plain, ours, first; /* first: that differed */
    struct fl_how how = {.argv = FL_ARGV("victim_host_end", way, companion, request, "500"),
                         .preload = "",
                         .seconds = SECONDS};
    long runs = fl_host_runs(request[0] == 'n' || request[0] == 'f' ? 2 : 4);
    long differ = 0;

    tally->rows++;
    fl_host_piped(&how, &plain);
    assert_false(plain.timed_out);
    assert_string_equal(plain.err, "");
    for (long i = 0; i < runs && (differ == 0 || !first.timed_out); i++) {
        const char *delay = text_as("%u", (unsigned)(fl_host_random() % 3000));
        how.preload = NULL;
        how.argv = FL_ARGV("victim_host_end", way, companion, request, delay);
        how.env = FL_ENV(decay_for(request));
        fl_host_piped(&how, &ours);
        if (strcmp(ours.out, plain.out) != 0 || ours.err[0] != '\0' || ours.timed_out ||
            ours.exit_status != plain.exit_status || ours.term_signal != plain.term_signal) {
            first = differ++ == 0 ? ours : first;
        }
    }
    if (differ > 0) {
        const char *end = text_as("%s", fl_host_end(&plain));
        fl_host_failed(tally, "%s, companion %s, requests %s: %ld of %ld runs\n", way, companion,
                       request, differ, runs);
        if (tally->failed <= 2) {
            fl_host_failed(tally, "glibc: %s\n%sours: %s\n%s%s", end, plain.out,
                           fl_host_end(&first), first.out, first.err);
            tally->failed--;
        }
    }
}

/* Main ends so with companions that live longer, or without, or either. */
static void run_way(const char *way, bool alone, bool together)
{
    struct fl_host_tally tally = {0};

    for (size_t c = 0; c < sizeof companions / sizeof companions[0]; c++) {
        bool is_alone = strcmp(companions[c], "none") == 0;
        for (size_t i = 0; i < REQUESTS && (is_alone ? alone : together); i++) {
            run_row(way, companions[c], requests[i], &tally);
        }
    }
    fl_host_judge(&tally);
}

CASE(memory_decays_after_main_has_ended)
{
    static const char *const modes[] = {"decays_by_the_worker_that_was", "decays_by_a_new_worker"};
    if (fl_rung_has("worker")) {
        return; /* nothing decays by itself then */
    }
    for (size_t i = 0; i < 2; i++) {
        const struct fl_run *r =
            FL_ACTIVE(FL_ARGV("victim_last_thread", modes[i]), FL_ENV("FAULTLESS_DECAY_MS=400"));
        assert_string_equal(r->out, "small\n");
    }
}

#define WAY(way, alone, together) CASE_IS(main_ends_by_##way, run_way(#way, alone, together))

WAY(return, true, true)
WAY(exit, true, true)
WAY(_exit, true, true)
WAY(quick_exit, true, true)
WAY(SYS_exit, true, false)
WAY(pthread_exit_alone, true, true)
WAY(pthread_exit, false, true)
WAY(other_exits, false, true)

CASES_MAIN()
