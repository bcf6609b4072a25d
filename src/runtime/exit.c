/* What FAULTLESS_STATS asks for: at exit, and when the signal comes.
 *
 * Standard error gets a line (or the table) a process; a file gets a line of JSON a process; a file
 * whose name ends with .prom is replaced, now and then as well. */
#include "runtime/runtime.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* What a report is made of, and its text. Too large for a stack of the program's: the thread that
 * calls exit may have 16 KiB. */
struct report {
    struct fl_stats_values values;
    struct fl_stats_nodes nodes;
    struct fl_stats_gpus gpus;
    char program[64], path[FL_OPTION_TEXTS], text[FL_PROMETHEUS_BYTES];
};

/* Of the thread that ends the process. */
static struct report last;

/* JSON and PROMETHEUS are files, JSON_LINE is standard error. */
enum where { NOWHERE, SUMMARY, TABLE, JSON_LINE, JSON, PROMETHEUS };

/* The worker is at the file for Prometheus; the process ends, and it is not to begin. Each looks at
 * the other's after it has set its own. */
static _Atomic uint32_t writing;
static _Atomic bool ending;

static const uint64_t textfile_ns = 15ull * 1000000000; /* Prometheus's usual interval */

/* fl_option_set may change it meanwhile: each looks once. */
static const char *said(void)
{
    return fl_runtime.options.text[FL_OPTION_stats];
}

static enum where where_to(const char *text)
{
    size_t len = text != NULL ? strlen(text) : 0;
    int is_on = len != 0 ? fl_parse_bool(text) : 0;

    if (is_on >= 0) {
        return is_on > 0 ? SUMMARY : NOWHERE;
    }
    if (strcmp(text, "stderr") == 0 || strcmp(text, "summary") == 0) {
        return SUMMARY;
    }
    if (strcmp(text, "table") == 0) {
        return TABLE;
    }
    if (strcmp(text, "json") == 0) {
        return JSON_LINE;
    }
    return len > 5 && strcmp(text + len - 5, ".prom") == 0 ? PROMETHEUS : JSON;
}

static void read_nodes(struct fl_stats_nodes *out)
{
    const struct fl_topology *t = &fl_runtime.numa.topology;

    fl_region_nodes_read(&fl_runtime.region, out);
    for (unsigned i = 0; i < out->n; i++) {
        out->node[i].id = t->id[i];
    }
}

static void read_program(char *out, size_t size)
{
    if (fl_sys.read_file("/proc/self/comm", out, size) != 0) {
        out[0] = '\0';
    }
    out[strcspn(out, "\n")] = '\0';
}

/* `soon`: the caller waits for no lock. Returns the text's bytes. */
static size_t put_table(struct report *r, bool soon)
{
    struct fl_text t = fl_text_on(r->text, sizeof r->text);

    fl_read_stats(&r->values);
    read_nodes(&r->nodes);
    fl_gpu_stats_read(&r->gpus, soon);
    fl_stats_format_table(&r->values, fl_call_pid(), &t);
    fl_stats_format_nodes(&r->nodes, fl_call_pid(), &t);
    fl_stats_format_gpus(&r->gpus, fl_call_pid(), &t);
    return t.len;
}

/* To that file, as JSON or for Prometheus. `soon`: as above. */
static int write_file(struct report *r, const char *name, bool soon)
{
    enum where where = where_to(name);
    struct fl_text t = fl_text_on(r->text, sizeof r->text);

    if (!fl_names_expand(&fl_runtime.options.names, name, fl_call_pid(), r->path, sizeof r->path)) {
        return -ENAMETOOLONG;
    }
    fl_read_stats(&r->values);
    read_program(r->program, sizeof r->program);
    fl_gpu_stats_read(&r->gpus, soon);
    if (where == PROMETHEUS) {
        fl_stats_format_prometheus(&r->values, &r->gpus, fl_call_pid(), r->program, &t);
        return fl_sys.replace_file(r->path, r->text, t.len);
    }
    read_nodes(&r->nodes);
    fl_stats_format_json(&r->values, &r->nodes, &r->gpus, fl_call_pid(), r->program, &t);
    return fl_sys.append_file(r->path, r->text, t.len);
}

/* What the worker writes must not be cut short by the end, which would leave half a file beside,
 * nor come after what is written last. It may be held up: not for long. */
static void let_worker_finish(void)
{
    static const uint64_t at_most_ns = 100000000;

    atomic_store(&ending, true);
    if (fl_route.worker != NULL && atomic_load(&writing) != 0) {
        (void)fl_sys.wait(&writing, 1, at_most_ns);
    }
}

static void write_by_worker(struct report *r, const char *name)
{
    atomic_store(&writing, 1);
    if (!atomic_load(&ending)) {
        (void)write_file(r, name, true);
    }
    atomic_store(&writing, 0);
    (void)fl_sys.wake(&writing, 1);
}

/* ---- when the signal comes ---- */

static _Atomic bool report_wanted;

static void want_report(int signal)
{
    (void)signal;
    atomic_store(&report_wanted, true);
    /* The next large request or free calls it. */
    atomic_store(&fl_runtime.region.wants_worker, true);
}

/* The worker has a table of descriptors of its own: the program's standard error by its name. */
static void table_to_standard_error(struct report *r)
{
    struct fl_text p = fl_text_on(r->path, sizeof r->path);
    size_t len = put_table(r, true);

    fl_text_str(&p, "/proc/");
    fl_text_u64(&p, (uint64_t)fl_call_pid());
    fl_text_str(&p, "/fd/2");
    (void)fl_sys.append_file(r->path, r->text, len);
}

uint64_t fl_report_wanted(struct fl_region *r)
{
    static uint64_t written_ns;  /* the file for Prometheus; the worker's */
    static struct report report; /* the worker's */
    const char *name = said();
    enum where where = where_to(name);
    bool asked = atomic_exchange(&report_wanted, false), regular = where == PROMETHEUS;
    uint64_t now = regular ? fl_sys.now_ns() : 0;

    (void)r;
    if (regular && !asked && written_ns != 0 && now - written_ns < textfile_ns) {
        return textfile_ns - (now - written_ns);
    }
    if (regular || (asked && where == JSON)) {
        written_ns = now;
        write_by_worker(&report, name);
    } else if (asked) {
        table_to_standard_error(&report);
    }
    return regular ? textfile_ns : FL_JOB_IDLE;
}

void fl_report_on_signal(int signal)
{
    struct sigaction now, ours = {.sa_handler = want_report, .sa_flags = SA_RESTART};

    if (signal != 0 && sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
        now.sa_handler == SIG_DFL) {
        (void)sigaction(signal, &ours, NULL);
    }
}

/* ---- at exit ---- */

static uint64_t faults_of_mine(void)
{
    struct rusage usage = {0};

    return fl_call(SYS_getrusage, RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_minflt : 0;
}

/* Touches memory that is mapped anew, as glibc does for a large block: in base pages, or in huge
 * ones where the system gives these to all. */
static void measure(struct fl_summary *s)
{
    size_t len = fl_page.always ? fl_page.huge : 128 * fl_page.base, all = 2 * len;
    uintptr_t base;

    if (fl_sys_is_confined() || fl_sys.reserve(all, &base) != 0) {
        return;
    }
    struct fl_range part = {fl_align_up(base, len), len};
    if (fl_sys.commit(part) == 0) {
        uint64_t faults = faults_of_mine(), start = fl_sys.own_ns();
        for (uintptr_t at = part.base; at < fl_range_end(part); at += fl_page.base) {
            *(volatile char *)at = 1; /* NOLINT(performance-no-int-to-ptr) */
        }
        s->sample_ns = fl_sys.own_ns() - start; /* other programs may run meanwhile */
        s->sample_faults = faults_of_mine() - faults;
        s->sample_bytes = len;
    }
    (void)fl_sys.unmap((struct fl_range){base, all});
}

/* Not where they are left to memory that is advised, as ours is: that answer is not 1. */
static bool is_thp_refused(void)
{
    return !fl_sys_is_confined() && fl_call(SYS_prctl, PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
}

/* The launcher's process, by its word; 0: none. Constant after boot. */
static uint64_t launched;

/* Bytes; 0: not known. Not ru_maxrss, which outlives execve(2): getrusage(2).
 *   text   for the file. */
static uint64_t resident_peak(char *text, size_t size)
{
    uint64_t kib = 0;

    if (fl_sys.read_file("/proc/self/status", text, size) == 0) {
        (void)fl_parse_after(text, "\nVmHWM:", &kib);
    }
    return kib << 10;
}

/* This process was asked for: by the launcher, or in a shell with job control. It is none of many
 * helpers. */
static bool is_asked_for(void)
{
    return launched == (uint64_t)fl_call_pid() || fl_call(SYS_getpgid, 0) == fl_call_pid();
}

/* Another's malloc has the program's requests: how many were large is not known. */
static bool is_shadowed(const struct fl_stats_values *v)
{
    bool is_off = fl_is_started() && !fl_runtime.active;

    return v->requests == 0 && fl_runtime.shadowed_by != NULL && !is_off;
}

/* A process that did nothing has a line in place of the table, and none in place of a line where it
 * is a helper; unless it is not served. */
static void say_at_exit(enum where where)
{
    struct report *r = &last;
    struct fl_text t = fl_text_on(r->text, sizeof r->text);

    fl_read_stats(&r->values);
    fl_gpu_stats_read(&r->gpus, false);
    if (where == TABLE && (r->values.requests != 0 || r->gpus.n != 0)) {
        fl_say_last(r->text, put_table(r, false));
        return;
    }
    if (where == JSON_LINE) {
        read_program(r->program, sizeof r->program);
        read_nodes(&r->nodes);
        fl_stats_format_json(&r->values, &r->nodes, &r->gpus, fl_call_pid(), r->program, &t);
        if (r->values.requests != 0 || r->gpus.n != 0 || is_shadowed(&r->values)) {
            fl_say_last(r->text, t.len);
        }
        return;
    }
    bool is_silent = r->values.requests == 0 && !is_shadowed(&r->values) && !is_asked_for();
    if (where == SUMMARY && is_silent) {
        fl_stats_format_gpu_summary(&r->gpus, fl_call_pid(), &t);
        if (t.len != 0) {
            fl_say_last(r->text, t.len);
        }
        return;
    }
    read_program(r->program, sizeof r->program);
    struct fl_summary s = {.values = &r->values,
                           .pid = fl_call_pid(),
                           .program = r->program,
                           .threshold = fl_runtime.options.value[FL_OPTION_threshold],
                           .shadowed_by = is_shadowed(&r->values) ? fl_runtime.shadowed_by : NULL};
    if (r->values.requests != 0) {
        measure(&s);
        s.resident_peak = resident_peak(r->text, sizeof r->text);
        s.thp_refused = is_thp_refused();
    }
    fl_stats_format_summary(&s, &t);
    fl_stats_format_gpu_summary(&r->gpus, fl_call_pid(), &t);
    fl_say_last(r->text, t.len);
}

/* No process has one that did nothing: helpers would write over what counts. */
static void write_timeline(void)
{
    const char *name = fl_runtime.options.text[FL_OPTION_timeline];
    char *path = last.path;

    if (fl_timeline == NULL || atomic_load(&fl_timeline->count) == fl_timeline->first) {
        return;
    }
    read_program(last.program, sizeof last.program);
    int rc = -ENAMETOOLONG;
    if (fl_names_expand(&fl_runtime.options.names, name, fl_call_pid(), path, sizeof last.path)) {
        rc = fl_timeline_write(path, fl_call_pid(), last.program);
    }
    if (rc != 0) {
        fl_report_unwritten("FAULTLESS_TIMELINE=", name, rc);
    }
}

void fl_report_changed(void)
{
    const char *name = said();
    enum where where = where_to(name);

    if (where == SUMMARY || where == TABLE || where == JSON_LINE) {
        fl_say_keep();
    }
    if (name != NULL && strchr(name, '%') != NULL && fl_runtime.options.names.host[0] == '\0') {
        fl_names_read(&fl_runtime.options.names, environ);
    }
}

void fl_report_start(char *const env[])
{
    static const char mark[] = "_FAULTLESS_PID=";
    enum where where = where_to(said());

    if (fl_runtime.options.text[FL_OPTION_timeline] != NULL && fl_timeline_begin() != 0) {
        fl_say("no memory for FAULTLESS_TIMELINE");
    }
    fl_report_begin_profile();
    if (where == SUMMARY || where == TABLE || where == JSON_LINE) {
        fl_say_keep();
    }
    for (; env != NULL && *env != NULL && where == SUMMARY; env++) {
        if (strncmp(*env, mark, sizeof mark - 1) == 0) {
            (void)fl_parse_u64(*env + sizeof mark - 1, &launched);
        }
    }
}

__attribute__((destructor)) static void at_exit(void)
{
    const char *name = said();
    enum where where = where_to(name);

    if (atomic_load(&fl_runtime.has_own_filter)) { /* which may kill for a call of ours */
        return;
    }
    if (fl_is_started()) {
        if (fl_region_busy()) {
            return;
        }
        write_timeline();
        fl_report_profile();
        if (where != NOWHERE) {
            fl_region_prove(&fl_runtime.region);
        }
    }
    if (where == NOWHERE) {
        return;
    }
    if (where == SUMMARY || where == TABLE || where == JSON_LINE) {
        say_at_exit(where);
        return;
    }
    let_worker_finish();
    int rc = write_file(&last, name, false);
    if (rc != 0) {
        fl_report_unwritten("FAULTLESS_STATS=", name, rc);
    }
}
