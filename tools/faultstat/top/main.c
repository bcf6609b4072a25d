/* `faultstat top`: the processes under faultless, now and again. */
#include "faultstat/faultstat.h"
#include "faultstat/options.h"
#include "faultstat/sink.h"
#include "faultstat/text.h"
#include "faultstat/top/screen.h"
#include "faultstat/top/show.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    struct fl_top top; /* whom to show */
    long rounds;       /* 0: for ever */
    double delay_s;
    bool batch;
    const char *json; /* a file; NULL: text */
    FILE *file;       /* where text or JSON goes */
    struct fl_screen_view view;
};

static const double least_delay_s = 0.1, most_delay_s = 86400;

static const char doc[] =
    "Show the processes under faultless: their memory, plans, page faults, huge pages. On a "
    "terminal it fills the screen (h explains keys and columns, q quits); else it prints text. It "
    "only reads.\vJSON takes the place of the text: an object a round, on a line of its own. Exit "
    "status 1: a process of -p is not under faultless, or could "
    "not be read; 125: faultstat itself failed.";

static const struct argp_option option[] = {
    {"all", FL_KEY_ALL, NULL, 0, "Show processes of all users, as far as they may be read", 0},
    {"batch", 'b', NULL, 0, "Print text, also on a terminal", 0},
    {"delay", 'd', "SECONDS", 0, "Time between two rounds (default 2)", 0},
    {FL_OPTION_JSON},
    {"rounds", 'n', "N", 0, "End after N rounds (default: never)", 0},
    {"pid", 'p', "PID", 0, "Show this process alone; may be repeated", 0},
    {"sort", FL_KEY_SORT, "FIGURE", 0,
     "Sort by live (default), resident, reserve, faults, requests, hit or pid", 0},
    {0},
};

static void set_delay(struct options *o, char *arg, struct argp_state *state)
{
    o->delay_s = fl_options_seconds(state, arg);
    if (o->delay_s < least_delay_s || o->delay_s > most_delay_s) {
        argp_error(state, "'%s' is no delay between 0.1 and 86400 seconds", arg);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case FL_KEY_ALL:
        o->top.all_users = true;
        return 0;
    case 'b':
        o->batch = true;
        return 0;
    case 'd':
        set_delay(o, arg, state);
        return 0;
    case 'j':
        o->json = fl_options_file(state, arg);
        return 0;
    case 'n':
        o->rounds = fl_options_number(state, arg, 1, INT32_MAX);
        return 0;
    case 'p':
        if (o->top.onlys == FL_TOP_PIDS) {
            argp_error(state, "more than %d processes", FL_TOP_PIDS);
        }
        o->top.only[o->top.onlys++] = (pid_t)fl_options_number(state, arg, 1, INT32_MAX);
        return 0;
    case FL_KEY_SORT:
        o->view.key = fl_top_key_of(arg);
        if (o->view.key == FL_TOP_KEYS) {
            argp_error(state, "'%s' is no figure to sort by", arg);
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Those of -p that are not there, at the first look. */
static int complain(const struct fl_top *top)
{
    int status = 0;
    for (size_t i = 0; i < top->onlys; i++) {
        int rc = fl_top_find(top, top->only[i]);
        if (rc != 0) {
            fprintf(stderr, "faultstat: %d: %s\n", (int)top->only[i],
                    rc == -ENOENT ? "not under faultless" : strerror(-rc));
            status = FL_EXIT_SOME_FAILED;
        }
    }
    return status;
}

static int look(struct options *o)
{
    int rc = fl_top_look(&o->top);
    if (rc != 0) {
        fprintf(stderr, "faultstat: /proc: %s\n", strerror(-rc));
        return rc;
    }
    fl_top_sort(&o->top, o->view.key);
    return 0;
}

static void wait_s(double seconds)
{
    struct timespec rest = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

static void print_round(const struct options *o, long round)
{
    if (o->json == NULL) {
        fputs(round > 1 ? "\n" : "", o->file);
        fl_top_print(&o->top, fl_text_columns(o->file), o->file);
        return;
    }
    json_t *object = fl_top_json(&o->top, round);
    (void)json_dumpf(object, o->file, JSON_COMPACT | JSON_REAL_PRECISION(12));
    (void)fputc('\n', o->file);
    json_decref(object);
}

/* Text or JSON, round by round. */
static int run_batch(struct options *o)
{
    int status = 0;
    for (long round = 1; o->rounds == 0 || round <= o->rounds; round++) {
        if (round > 1) {
            wait_s(o->delay_s);
        }
        if (look(o) != 0) {
            return FL_EXIT_OWN;
        }
        status = round == 1 ? complain(&o->top) : status;
        print_round(o, round);
        if (fflush(o->file) != 0) {
            return FL_EXIT_OWN;
        }
        if (o->top.onlys != 0 && o->top.count == 0) {
            break; /* all of them have ended */
        }
    }
    return status;
}

/* Until the next round is due. False: the user quits. */
static bool show_until(struct options *o, const struct timespec *due)
{
    struct fl_screen_view *view = &o->view;
    for (;;) {
        struct timespec now;
        fl_screen_draw(&o->top, view);
        clock_gettime(CLOCK_MONOTONIC, &now);
        long ms = (long)(due->tv_sec - now.tv_sec) * 1000 + (due->tv_nsec - now.tv_nsec) / 1000000;
        switch (fl_screen_wait(ms > 0 ? ms : 0)) {
        case FL_SCREEN_QUIT:
            return false;
        case FL_SCREEN_TIME:
            return true;
        case FL_SCREEN_SORT:
            view->key = (enum fl_top_key)((view->key + 1) % FL_TOP_KEYS);
            fl_top_sort(&o->top, view->key);
            break;
        case FL_SCREEN_LEGEND:
            view->has_legend = !view->has_legend;
            break;
        case FL_SCREEN_DOWN:
            view->first++;
            break;
        case FL_SCREEN_UP:
            view->first -= view->first > 0;
            break;
        case FL_SCREEN_DRAW:
            break;
        }
    }
}

/* On the screen, which the caller has taken over. */
static int run_screen(struct options *o)
{
    bool goes_on = true;
    for (long round = 1; goes_on && (o->rounds == 0 || round <= o->rounds); round++) {
        struct timespec due;
        if (fl_top_look(&o->top) != 0) {
            return FL_EXIT_OWN;
        }
        fl_top_sort(&o->top, o->view.key);
        clock_gettime(CLOCK_MONOTONIC, &due);
        due.tv_sec += (time_t)o->delay_s;
        due.tv_nsec += (long)((o->delay_s - (double)(time_t)o->delay_s) * 1e9);
        goes_on = show_until(o, &due);
    }
    return 0;
}

int fl_top_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "", doc, fl_command_help, NULL, NULL};
    static struct options o = {.delay_s = 2};
    struct fl_sink sink = {0};
    int status;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (o.json != NULL && fl_sink_open(&sink, o.json) != 0) {
        return FL_EXIT_OWN;
    }
    o.file = o.json != NULL ? fl_sink_begin_lines(&sink) : stdout;
    if (!o.batch && o.json == NULL && fl_screen_can() && fl_screen_begin()) {
        status = run_screen(&o);
        fl_screen_end();
    } else {
        status = run_batch(&o);
    }
    if (o.json != NULL && fl_sink_end(&sink) != 0) {
        status = FL_EXIT_OWN;
    }
    fl_top_free(&o.top);
    return status;
}
