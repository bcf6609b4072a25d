/* `faultstat heap`: which places in a program hold its large blocks. */
#include "faultstat/faultstat.h"
#include "faultstat/heap/image.h"
#include "faultstat/options.h"
#include "faultstat/record/names.h"
#include "faultstat/report/report.h"
#include "faultstat/report/sites.h"
#include "faultstat/text.h"

#include <argp.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What a stack is counted for: the kinds of the record that names and sites are made from. */
enum { FL_LIVE_NOW, FL_AT_PEAK, FL_BLOCKS };

struct options {
    const char *what; /* a process, or a file */
    const char *folded;
    int kind; /* of the folded stacks */
    size_t top;
};

static const double mib = 1 << 20;

static const char doc[] =
    "Show which places in a program hold its large blocks. The program runs with "
    "FAULTLESS_PROFILE=1, and its process is read and not stopped; or it has ended, and FILE is "
    "what FAULTLESS_PROFILE=FILE has left.\vSites are estimated from samples; blocks of at least "
    "FAULTLESS_PROFILE_EVERY are all there.";

static const struct argp_option option[] = {
    {FL_OPTION_TOP},
    {FL_OPTION_FOLDED},
    {"peak", FL_KEY_PEAK, NULL, 0, "With --folded: what was held at the peak, not now", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case FL_KEY_TOP:
        o->top = (size_t)fl_options_number(state, arg, 0, INT32_MAX);
        return 0;
    case 'f':
        o->folded = arg;
        return 0;
    case FL_KEY_PEAK:
        o->kind = FL_AT_PEAK;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            argp_error(state, "more than one process or file");
        }
        o->what = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name a process or a file");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- from samples to stacks with names ---- */

#ifndef __x86_64__
/* Code is followed by its frame pointers: each leads to the caller's, and beside it lies where that
 * goes on. Returns how many. */
static size_t follow(const struct fl_image_sample *s, uint64_t chain[FL_FRAMES_MOST])
{
    uint64_t sp = s->head.reg[FL_PROFILE_SP];
    uint64_t fp = s->head.reg[FL_PROFILE_BP];
    size_t count = 1;
    chain[0] = s->head.reg[FL_PROFILE_IP];
    while (count < FL_FRAMES_MOST && fp >= sp && fp - sp + 16 <= s->head.stack_len) {
        uint64_t pair[2];
        memcpy(pair, s->stack + (fp - sp), sizeof(pair));
        chain[count++] = pair[1];
        fp = pair[0] > fp ? pair[0] : 0;
    }
    return count;
}
#endif

/* The library's own functions, which are the same for all: the innermost. Returns how many. */
static size_t count_own(struct fl_recorder *r, const struct fl_place *place, size_t count)
{
    static const char own[] = "libfaultless";
    size_t n = 0;
    while (n + 1 < count && strncmp(fl_modules_file(&r->unwinder.modules, place[n].module), own,
                                    sizeof(own) - 1) == 0) {
        n++;
    }
    return n;
}

static void add(struct fl_recorder *r, struct fl_process *process, const struct fl_image *image,
                const struct fl_image_sample *s)
{
    struct fl_event event = {.type = FL_EVENT_FAULT, .pid = process->pid, .reg = s->head.reg};
    struct fl_place all[FL_FRAMES_MOST];
    double weight = (double)s->head.weight;
    bool is_cut;
    event.stack = s->stack;
    event.stack_len = s->head.stack_len;
#ifndef __x86_64__
    uint64_t chain[FL_FRAMES_MOST];
    event.reg = NULL;
    event.chain = chain;
    event.chain_len = follow(s, chain);
#endif
    size_t count = fl_unwind(&r->unwinder, process, &event, all, &is_cut);
    size_t own = count_own(r, all, count);
    const struct fl_place *place = all + own;
    count -= own;
    if (s->head.state == FL_PROFILE_LIVE) {
        fl_recorder_add(r, place, count, (enum fl_kind)FL_LIVE_NOW, 0, weight);
        fl_recorder_add(r, place, count, (enum fl_kind)FL_BLOCKS, 0, weight / (double)s->head.len);
    }
    if (s->head.number <= image->head.peak_at) {
        fl_recorder_add(r, place, count, (enum fl_kind)FL_AT_PEAK, 0, weight);
    }
}
_Static_assert((int)FL_PROFILE_REGS == (int)FL_REG_COUNT && (int)FL_PROFILE_BP == (int)FL_REG_BP &&
                   (int)FL_PROFILE_SP == (int)FL_REG_SP && (int)FL_PROFILE_IP == (int)FL_REG_IP,
               "registers lie as the unwinder wants them");

static const char *frame_name(const json_t *record, const json_t *list, size_t i)
{
    size_t frame = (size_t)json_integer_value(json_array_get(list, i));
    const json_t *frames = json_object_get(record, "frames");
    const char *name = json_string_value(json_object_get(json_array_get(frames, frame), "name"));
    return name != NULL ? name : "";
}

/* A function of the program's own, as Python 3.12 and later name it in their perf map. */
static bool is_own_python(const char *name)
{
    static const char *const others[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                         "<froz"};
    bool is_own = true;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        is_own = is_own && strstr(name, others[i]) == NULL;
    }
    return is_own;
}

/* Where Python functions have names, the site is the innermost one of the program's own, else of
 * any: those of C that it calls are the same for all. */
static void prefer_python(json_t *record)
{
    json_t *stack;
    size_t i;
    json_array_foreach(json_object_get(record, "stacks"), i, stack)
    {
        const json_t *list = json_object_get(stack, "frames");
        const json_t *found = NULL;
        bool is_own = false;
        for (size_t k = json_array_size(list); k-- > 0 && !is_own;) {
            const char *name = frame_name(record, list, k);
            if (strncmp(name, "py::", 4) == 0) {
                is_own = is_own_python(name);
                found = found == NULL || is_own ? json_array_get(list, k) : found;
            }
        }
        if (found != NULL) {
            json_object_set_new(stack, "site", json_integer(json_integer_value(found)));
        }
    }
}

/* The stacks as faultstat record has them, with bytes for faults. NULL: no memory. */
static json_t *name_stacks(const struct fl_image *image)
{
    struct fl_recorder *r = calloc(1, sizeof(*r));
    json_t *root = json_object();
    if (r == NULL || fl_unwinder_open(&r->unwinder) != 0) {
        free(r);
        return NULL;
    }
    r->unwinder.modules.began = 0; /* the program's perf map is older than this */
    struct fl_process *process = fl_processes_get(&r->processes, (pid_t)image->head.pid);
    if (process != NULL) {
        fl_recorder_read_maps(r, process, image->maps);
    }
    for (size_t i = 0; process != NULL && i < image->count; i++) {
        add(r, process, image, &image->sample[i]);
    }
    if (process == NULL || fl_names_save(r, root) != 0) {
        json_decref(root);
        root = NULL;
    }
    if (root != NULL) {
        prefer_python(root);
    }
    fl_unwinder_close(&r->unwinder);
    fl_processes_clear(&r->processes);
    fl_intern_clear(&r->tally.places);
    fl_intern_clear(&r->tally.stacks);
    free(r->tally.faults);
    free(r);
    return root;
}

/* ---- showing them ---- */

static void print_row(double bytes, double of, const char *text)
{
    printf("%10.1f %5.1f  %s\n", bytes / mib, of > 0 ? 100 * bytes / of : 0, text);
}

static void print_site(const json_t *record, const struct fl_site *site, double live)
{
    char text[512];
    char *line = fl_text_line(fl_sites_name(record, site->frame, text, sizeof(text)));
    printf("%10.1f %5.1f %10.1f %8.0f  %s\n", site->kind[FL_LIVE_NOW] / mib,
           live > 0 ? 100 * site->kind[FL_LIVE_NOW] / live : 0, site->kind[FL_AT_PEAK] / mib,
           site->kind[FL_BLOCKS], line != NULL ? line : "?");
    free(line);
    line = fl_text_line(fl_sites_callers(record, site, text, sizeof(text)));
    if (line != NULL && line[0] != '\0') {
        fl_text_wrap(stdout, "      <", line, 8, fl_text_columns(stdout));
    }
    free(line);
}

static int print_table(const struct fl_image *image, const json_t *record, size_t most)
{
    struct fl_sites sites;
    const struct fl_profile_head *h = &image->head;
    double live = (double)h->live_bytes;
    double named = (double)h->live;
    double foreign = (double)h->resident_bytes - (double)h->held_bytes;
    if (fl_sites_get(record, &sites) != 0) {
        return -ENOMEM;
    }
    printf("process %u: %.1f MiB in large blocks; at the peak %.1f MiB; %zu samples, one in %.1f "
           "MiB\n\n%10s %5s %10s %8s  site\n",
           h->pid, live / mib, (double)h->peak / mib, image->count, (double)h->every / mib,
           "live MiB", "%", "peak MiB", "blocks");
    for (size_t i = 0; i < sites.count && i < most; i++) {
        print_site(record, &sites.site[i], live);
    }
    if (sites.count > most) {
        printf("    and %zu more sites\n", sites.count - most);
    }
    printf("\n");
    print_row(named, live, "of sites together, estimated; the rest is chance, or no malloc asked");
    print_row((double)h->kept_bytes, live, "kept free: held by faultless, in no block");
    print_row(foreign > 0 ? foreign : 0, live, "not ours: resident, and not of faultless");
    if (h->lost != 0) {
        printf("%llu blocks found no room in the profile: use a larger FAULTLESS_PROFILE_EVERY\n",
               (unsigned long long)h->lost);
    }
    fl_sites_clear(&sites);
    return 0;
}

static int write_folded(json_t *record, int kind, const char *path)
{
    bool is_stdout = strcmp(path, "-") == 0;
    FILE *file = is_stdout ? stdout : fopen(path, "we");
    json_t *chosen = json_array();
    const json_t *stack;
    size_t i;
    if (file == NULL) {
        return -errno;
    }
    json_array_foreach(json_object_get(record, "stacks"), i, stack)
    {
        if (json_integer_value(json_object_get(stack, "kind")) == kind) {
            json_array_append(chosen, json_array_get(json_object_get(record, "stacks"), i));
        }
    }
    json_object_set_new(record, "stacks", chosen);
    fl_report_folded(record, file);
    bool is_bad = ferror(file) != 0;
    is_bad = (is_stdout ? fflush(file) : fclose(file)) != 0 || is_bad;
    return is_bad ? -EIO : 0;
}

static int complain(const char *what, int rc)
{
    const char *why = rc == -ENOENT    ? "no such file, or not under faultless"
                      : rc == -ENODATA ? "no profile: it was not started with FAULTLESS_PROFILE"
                      : rc == -EPROTO  ? "this is no profile"
                      : rc == -EAGAIN  ? "no large request yet"
                      : rc == -EPROTONOSUPPORT ? "of another version of faultless"
                                               : strerror(-rc);
    fprintf(stderr, "faultstat: %s: %s\n", what, why);
    return FL_EXIT_OWN;
}

int fl_heap_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "FILE|PID", doc, fl_command_help, NULL, NULL};
    struct options o = {.top = 20};
    struct fl_image image;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    bool is_pid = o.what[strspn(o.what, "0123456789")] == '\0' && o.what[0] != '\0';
    int rc = is_pid ? fl_image_of_process((pid_t)strtol(o.what, NULL, 10), &image)
                    : fl_image_of_file(o.what, &image);
    json_t *record = rc == 0 ? name_stacks(&image) : NULL;
    rc = rc == 0 && record == NULL ? -ENOMEM : rc;
    const char *at = o.what;
    if (rc == 0 && o.folded != NULL) {
        at = o.folded;
        rc = write_folded(record, o.kind, at);
    } else if (rc == 0) {
        rc = print_table(&image, record, o.top);
    }
    json_decref(record);
    fl_image_clear(&image);
    return rc == 0 ? 0 : complain(at, rc);
}
