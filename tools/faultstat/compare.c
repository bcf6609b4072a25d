/* `faultstat compare`: one command under several allocators, in rounds. Each round runs all of them
 * once and begins with another one than the round before, so that drift of the machine (heat, page
 * cache, a neighbour) falls on all alike. */
#include "faultstat/compare.h"
#include "faultstat/faultstat.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FL_LISTS_MAX = 24 };

struct options {
    char *list[FL_LISTS_MAX];
    size_t lists;
    const char *json; /* NULL: none; "-": standard output */
    unsigned interval_ms;
    bool verbose;
    struct fl_comparison *comparison;
};

static const char doc[] =
    "Run CMD under several allocators, interleaved, and print the medians.\v"
    "LIST is NAME,NAME,... of glibc, glibc-tuned, jemalloc, jemalloc-tuned, tcmalloc, mimalloc, "
    "tbbmalloc and faultless (default: all but tbbmalloc). NAME=/path/lib.so names another one, "
    "NAME=BASE,ENV=VALUE,... a variant; each takes a -a of its own. Allocators that are absent are "
    "named and skipped. A last line 'SUMMARY {json}' of CMD's output goes into the JSON. Exit "
    "status 1: a run failed; 125: faultstat itself.";

static const struct argp_option option[] = {
    {"allocators", 'a', "LIST", 0, "Allocators to compare; may be repeated", 0},
    {"rounds", 'n', "N", 0, "Runs under each allocator (default 3)", 0},
    {"warm", 'm', "MIB", 0, "Touch and free so much memory before each run (default 0)", 0},
    {"warmup", 'w', "N", 0, "Steps left out of the medians (default: a third, at least 3)", 0},
    {"env", 'e', "NAME=VALUE", 0, "Set a variable for all runs; may be repeated", 0},
    {"interval", 'i', "MS", 0, "Sampling interval (default 50); 0: at step marks only", 0},
    {"json", 'j', "FILE", 0, "Write the whole record to FILE; '-': to standard output", 0},
    {"nodes", 'N', NULL, 0, "Read on which nodes memory lies, on a machine with one node too", 0},
    {"verbose", 'v', NULL, 0, "Show the end of each run's output", 0},
    {0},
};

static long parse_number(const char *arg, long least, long most, struct argp_state *state)
{
    char *end;
    long number = strtol(arg, &end, 10);
    if (*end != '\0' || end == arg || number < least || number > most) {
        argp_error(state, "'%s' is no number between %ld and %ld", arg, least, most);
    }
    return number;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    struct fl_comparison *c = o->comparison;
    switch (key) {
    case 'a':
        if (o->lists == FL_LISTS_MAX) {
            argp_error(state, "more than %d lists", FL_LISTS_MAX);
        } else {
            o->list[o->lists++] = arg;
        }
        return 0;
    case 'n':
        c->rounds = (unsigned)parse_number(arg, 1, FL_ROUNDS_MAX, state);
        return 0;
    case 'm':
        c->warm_mib = (unsigned)parse_number(arg, 0, 1 << 30, state);
        return 0;
    case 'w':
        c->warmup = (int)parse_number(arg, 0, 1000000, state);
        return 0;
    case 'e':
        if (fl_peers_set_common(&c->peers, arg) != 0) {
            argp_error(state, "-e wants NAME=VALUE, at most %d times", FL_PEER_COMMON_MAX);
        }
        return 0;
    case 'i':
        o->interval_ms = (unsigned)parse_number(arg, 0, 1000000, state);
        return 0;
    case 'j':
        o->json = arg;
        return 0;
    case 'N':
        c->with_nodes = true;
        return 0;
    case 'v':
        o->verbose = true;
        return 0;
    case ARGP_KEY_ARG:
        c->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* One line on standard error: rewritten in place on a terminal, else one for each run. */
static void show_progress(const struct fl_comparison *c, unsigned round, unsigned order,
                          unsigned total, const char *name)
{
    bool is_tty = isatty(STDERR_FILENO) == 1;
    fprintf(stderr, "%s[%u/%u] round %u of %u: %s%s", is_tty ? "\r\033[K" : "", order + 1, total,
            round + 1, c->rounds, name, is_tty ? "" : "\n");
    fflush(stderr);
}

static void end_progress(void)
{
    if (isatty(STDERR_FILENO) == 1) {
        fputs("\r\033[K", stderr);
    }
}

/* Show the last lines of what a run printed. */
static void show_tail(const char *title, const struct fl_tail *tail)
{
    enum { FL_LINES = 12 };
    const char *at = tail->text + tail->len;
    for (int lines = 0; at > tail->text; at--) {
        lines += at[-1] == '\n' && at != tail->text + tail->len;
        if (lines == FL_LINES) {
            break;
        }
    }
    if (tail->len > 0) {
        end_progress();
        fprintf(stderr, "%s:\n%s%s", title, at, tail->text[tail->len - 1] == '\n' ? "" : "\n");
    }
}

static int warm(unsigned mib, int *interrupt)
{
    static struct fl_watch watch;
    static char self[] = "/proc/self/exe";
    static char name[] = "warm";
    char number[16];
    char *argv[] = {self, name, number, NULL};
    struct fl_env env = {"LD_PRELOAD", NULL};
    struct fl_watch_spec spec = {.argv = argv, .env = &env, .env_count = 1};
    if (mib == 0) {
        return 0;
    }
    snprintf(number, sizeof(number), "%u", mib);
    int rc = fl_watch_run(&watch, &spec);
    *interrupt = watch.interrupt;
    fl_watch_clear(&watch);
    return rc;
}

/* Run the command once under one peer. Returns 0, -EINTR when we were told to stop, -errno. */
static int run_once(const struct options *o, const struct fl_peer *peer, struct fl_run *run)
{
    static struct fl_watch watch; /* static for its size */
    const struct fl_comparison *c = o->comparison;
    struct fl_watch_spec spec = {
        .argv = c->command,
        .env = peer->env,
        .env_count = peer->env_count,
        .capture = true,
        .with_nodes = c->with_nodes,
        .interval_ms = o->interval_ms,
    };
    int interrupt = 0;
    int rc = warm(c->warm_mib, &interrupt);
    if (rc != 0 || interrupt != 0) {
        return rc != 0 ? rc : -EINTR;
    }
    rc = fl_watch_run(&watch, &spec);
    rc = rc != 0 ? rc : fl_metrics_get(&watch, c->warmup, run->value);
    if (rc == 0 && watch.interrupt != 0) {
        rc = -EINTR;
    }
    if (rc == 0) {
        run->is_done = true;
        run->exit_status = fl_watch_exit_status(&watch);
        run->nodes = watch.peaks.nodes;
        run->steps = fl_steps_count(&watch.steps);
        run->reported = fl_json_reported(watch.out.text);
        if (o->verbose || run->exit_status != 0) {
            show_tail(peer->name, &watch.out);
            show_tail(peer->name, &watch.err);
        }
        if (watch.exec_error != 0) {
            fprintf(stderr, "faultstat: %s: %s\n", c->command[0], strerror(-watch.exec_error));
            rc = watch.exec_error;
        }
    }
    fl_watch_clear(&watch);
    return rc;
}

static int run_all(const struct options *o)
{
    struct fl_comparison *c = o->comparison;
    size_t present[FL_PEERS_MAX];
    unsigned count = 0;
    unsigned order = 0;
    for (size_t i = 0; i < c->peers.count; i++) {
        if (c->peers.peer[i].is_present) {
            present[count++] = i;
        } else {
            fprintf(stderr, "faultstat: %s: not found, skipped\n", c->peers.peer[i].name);
        }
    }
    for (unsigned round = 0; round < c->rounds; round++) {
        for (unsigned turn = 0; turn < count; turn++) {
            size_t peer = present[(round + turn) % count];
            struct fl_run *run = &c->run[peer * c->rounds + round];
            show_progress(c, round, order, count * c->rounds, c->peers.peer[peer].name);
            run->order = order++;
            int rc = run_once(o, &c->peers.peer[peer], run);
            if (rc != 0) {
                end_progress();
                return rc;
            }
        }
    }
    end_progress();
    return count > 0 ? 0 : -ENOENT;
}

static int report(const struct options *o)
{
    const struct fl_comparison *c = o->comparison;
    bool is_stdout_json = o->json != NULL && strcmp(o->json, "-") == 0;
    int rc = 0;
    fl_comparison_print(c, is_stdout_json ? stderr : stdout);
    if (o->json != NULL) {
        json_t *root = fl_comparison_json(c);
        rc = root != NULL ? fl_json_write(root, o->json) : -ENOMEM;
        json_decref(root);
    }
    if (fflush(stdout) != 0 && rc == 0) {
        rc = -errno;
    }
    return rc;
}

static int add_peers(struct options *o)
{
    static char default_list[] = FL_PEERS_DEFAULT;
    char error[160] = "";
    int rc = 0;
    if (o->lists == 0) {
        o->list[o->lists++] = default_list;
    }
    for (size_t i = 0; i < o->lists && rc == 0; i++) {
        rc = fl_peers_add(&o->comparison->peers, o->list[i], error);
    }
    if (rc != 0) {
        fprintf(stderr, "faultstat: -a: %s\n", error);
        return rc;
    }
    return fl_peers_probe(&o->comparison->peers);
}

/* The exit status of a comparison that ran to `rc`. */
static int exit_status(const struct fl_comparison *c, int rc)
{
    int status;
    if (rc == -EINTR) {
        return FL_EXIT_INTERRUPTED;
    }
    if (rc != 0) {
        return FL_EXIT_OWN;
    }
    for (size_t i = 0; i < c->peers.count; i++) {
        if (fl_comparison_failures(c, i, &status) > 0) {
            return FL_EXIT_SOME_FAILED;
        }
    }
    return 0;
}

/* What tunes an allocator in our own environment would make its row into another one, silently. */
static void clear_tuning(void)
{
    static const char *const prefix[] = {"MALLOC_", "MIMALLOC_", "TCMALLOC_", "FAULTLESS_"};
    char name[128];

    for (char **e = environ; *e != NULL;) {
        size_t len = strcspn(*e, "=");
        bool tunes = false;
        for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++) {
            tunes |= strncmp(*e, prefix[i], strlen(prefix[i])) == 0;
        }
        if (tunes && len < sizeof(name) && strncmp(*e, "FAULTLESS_LIB=", 14) != 0) {
            memcpy(name, *e, len);
            name[len] = '\0';
            unsetenv(name); /* moves the rest up: `e` stays */
        } else {
            e++;
        }
    }
}

int fl_compare_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "[--] CMD [ARG...]", doc, NULL, NULL, NULL};
    static struct fl_comparison c; /* static for its size */
    c.rounds = 3;
    c.warmup = FL_WARMUP_DEFAULT;
    struct options o = {.interval_ms = FL_INTERVAL_MS, .comparison = &c};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    c.with_nodes |= fl_nodes_online() > 1;
    clear_tuning();
    int rc = add_peers(&o);
    if (rc != 0) {
        return FL_EXIT_OWN;
    }
    fl_machine_read(&c.machine);
    c.run = calloc(c.peers.count * c.rounds, sizeof(*c.run));
    rc = c.run != NULL ? run_all(&o) : -ENOMEM;
    if (rc == 0 || rc == -EINTR) {
        int write_rc = report(&o);
        rc = rc != 0 ? rc : write_rc;
    }
    if (rc != 0 && rc != -EINTR) {
        fprintf(stderr, "faultstat: %s\n", strerror(-rc));
    }
    int status = exit_status(&c, rc);
    for (size_t i = 0; c.run != NULL && i < c.peers.count * c.rounds; i++) {
        json_decref(c.run[i].reported);
    }
    free(c.run);
    return status;
}
