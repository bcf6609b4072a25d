/* However a program ends: its output, its exit status and the order of its handlers are those under
 * glibc. */
#include "host.h"

/* How main ends, and whether it has companions that live longer, or not, or either. */
struct way {
    const char *name;
    bool alone, together;
};

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

static void run_row(const struct way *w, const char *companion, const char *request,
                    struct fl_host_tally *tally)
{
    static struct fl_run plain, ours, first; /* first: that differed */
    struct fl_how how = {.argv = FL_ARGV("victim_host_end", w->name, companion, request, "500"),
                         .preload = "",
                         .seconds = SECONDS};
    long runs = fl_host_runs(request[0] == 'n' || request[0] == 'f' ? 2 : 4);
    long differ = 0;

    tally->rows++;
    fl_host_piped(&how, &plain);
    assert_false(plain.timed_out);
    assert_string_equal(plain.err, "");
    for (long i = 0; i < runs && (differ == 0 || !first.timed_out); i++) {
        char delay[24];
        snprintf(delay, sizeof delay, "%u", (unsigned)(fl_host_random() % 3000));
        how.preload = NULL;
        how.argv = FL_ARGV("victim_host_end", w->name, companion, request, delay);
        how.env = FL_ENV(decay_for(request));
        fl_host_piped(&how, &ours);
        if (strcmp(ours.out, plain.out) != 0 || ours.err[0] != '\0' || ours.timed_out ||
            ours.exit_status != plain.exit_status || ours.term_signal != plain.term_signal) {
            first = differ++ == 0 ? ours : first;
        }
    }
    if (differ > 0) {
        char end[96];
        snprintf(end, sizeof end, "%s", fl_host_end(&plain));
        fl_host_failed(tally, "%s, companion %s, requests %s: %ld of %ld runs\n", w->name,
                       companion, request, differ, runs);
        if (tally->failed <= 2) {
            fl_host_failed(tally, "glibc: %s\n%sours: %s\n%s%s", end, plain.out,
                           fl_host_end(&first), first.out, first.err);
            tally->failed--;
        }
    }
}

static void run_way(void **state)
{
    const struct way *w = *state;
    struct fl_host_tally tally = {0};

    for (size_t c = 0; c < sizeof companions / sizeof companions[0]; c++) {
        bool alone = strcmp(companions[c], "none") == 0;
        for (size_t i = 0; i < REQUESTS && (alone ? w->alone : w->together); i++) {
            run_row(w, companions[c], requests[i], &tally);
        }
    }
    fl_host_judge(&tally);
}

static void memory_decays_after_main_has_ended(void **state)
{
    static const char *const modes[] = {"had_worker", "had_none"};
    (void)state;
    if (fl_rung_has("worker")) {
        return; /* nothing decays by itself then */
    }
    for (size_t i = 0; i < 2; i++) {
        const struct fl_run *r = fl_preload_run(FL_ARGV("victim_host_decay", modes[i]),
                                                FL_ENV("FAULTLESS_DECAY_MS=400"));
        fl_run_assert_active(r);
        assert_string_equal(r->out, "small\n");
    }
}

#define WAY(text, is_alone, is_together)                                                           \
    FL_CASE_OF("main_ends_by_" text, run_way, (&(struct way){text, is_alone, is_together}))

int main(void)
{
    const struct CMUnitTest tests[] = {
        WAY("return", true, true),
        WAY("exit", true, true),
        WAY("_exit", true, true),
        WAY("quick_exit", true, true),
        WAY("SYS_exit", true, false),
        WAY("pthread_exit_alone", true, true),
        WAY("pthread_exit", false, true),
        WAY("other_exits", false, true),
        cmocka_unit_test(memory_decays_after_main_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
