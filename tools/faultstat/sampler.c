/* The sampling thread. smaps_rollup is read without our lock: a mark never waits for it. */
#include "faultstat/sampler.h"

#include <string.h>
#include <time.h>

enum { FL_READINGS = 5, FL_FREE_LOOKS = 64 };
enum { FL_FIRST_REST_NS = 1000000, FL_TASK_REST_NS = 20000000, FL_REST_FACTOR = 100 };

static uint64_t at_least(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void note_rollup(struct fl_peaks *peaks, const struct fl_rollup *rollup)
{
    uint64_t now = fl_proc_now_ns();
    if (peaks->samples++ != 0) {
        double ns = (double)(now - peaks->sampled_ns);
        peaks->pss_ns += (double)rollup->pss * ns;
        peaks->for_ns += ns;
    }
    peaks->sampled_ns = now;
    peaks->huge = at_least(peaks->huge, rollup->huge);
    peaks->pss = at_least(peaks->pss, rollup->pss);
    if (rollup->anonymous > peaks->at_peak.anonymous) {
        peaks->at_peak = *rollup;
    }
}

/* Near its peak a process has what it will have: then it counts where that lies, and lies last. */
static bool is_near_peak(const struct fl_peaks *peaks, const struct fl_rollup *rollup)
{
    return rollup->anonymous != 0 &&
           rollup->anonymous >= peaks->at_peak.anonymous - peaks->at_peak.anonymous / 8;
}

/* The sum over all processes of the command. Returns how many could be read. Called without the
 * lock: the kernel takes its time. */
static size_t read_rollups(struct fl_sampler *sampler, struct fl_rollup *sum)
{
    pid_t pid[FL_FAMILY_MAX];
    size_t count = 0;
    size_t read = 0;
    pthread_mutex_lock(&sampler->lock);
    for (size_t i = 0; i < sampler->family.count; i++) {
        if (sampler->family.member[i].is_alive) {
            pid[count++] = sampler->family.member[i].pid;
        }
    }
    pthread_mutex_unlock(&sampler->lock);
    for (size_t i = 0; i < count; i++) {
        struct fl_rollup one;
        if (fl_proc_read_rollup(pid[i], &one) == 0) {
            sum->anonymous += one.anonymous;
            sum->huge += one.huge;
            sum->pss += one.pss;
            read++;
        }
    }
    return read;
}

/* Read and note; called without the lock. Returns what was read. */
static struct fl_rollup sample_memory(struct fl_sampler *sampler, pid_t pid)
{
    struct fl_nodes nodes;
    struct fl_rollup rollup = {0};
    if (read_rollups(sampler, &rollup) == 0 || rollup.pss == 0) {
        return rollup; /* all have ended */
    }
    pthread_mutex_lock(&sampler->lock);
    note_rollup(&sampler->peaks, &rollup);
    bool wanted = sampler->with_nodes && is_near_peak(&sampler->peaks, &rollup);
    pthread_mutex_unlock(&sampler->lock);
    if (wanted && fl_nodes_read(pid, &nodes) == 0) {
        pthread_mutex_lock(&sampler->lock);
        sampler->peaks.nodes = nodes;
        pthread_mutex_unlock(&sampler->lock);
    }
    return rollup;
}

/* Called with the lock held. */
static void sample_helpers(struct fl_sampler *sampler)
{
    const struct fl_family *family = &sampler->family;
    for (size_t i = 0; i < family->count; i++) {
        if (family->member[i].is_alive) {
            (void)fl_threads_sample(&sampler->threads, family->member[i].pid);
        }
    }
}

/* Sleep for `rest_ns` or until told to stop. Called with the lock held. */
static void rest(struct fl_sampler *sampler, uint64_t rest_ns)
{
    uint64_t until = fl_proc_now_ns() + rest_ns;
    struct timespec when = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
    while (!sampler->stop && pthread_cond_timedwait(&sampler->wake, &sampler->lock, &when) == 0) {
    }
}

/* What this thread has cost so far: its time on a CPU, not the time it waited for one. */
static uint64_t cost_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Look for processes and helper threads. Returns what that costs each time: a first look at a new
 * program does not count, unless there are very many. Called with the lock held. */
static uint64_t sample_tasks(struct fl_sampler *sampler, pid_t pid)
{
    uint64_t begin = cost_ns();
    size_t before = sampler->family.looks;
    fl_family_update(&sampler->family, pid);
    sample_helpers(sampler);
    bool is_first = sampler->family.looks != before && before < FL_FREE_LOOKS;
    return is_first ? 0 : cost_ns() - begin;
}

/* The rests start short, so that a program of a few milliseconds is seen, and double up to the full
 * interval or to 100 times what the last reading cost, whichever is longer. */
static void *sample_until_stopped(void *arg)
{
    struct fl_sampler *sampler = arg;
    uint64_t interval_ns = (uint64_t)sampler->interval_ms * 1000000;
    uint64_t rest_ns = FL_FIRST_REST_NS;
    uint64_t rollup_rest_ns = FL_FIRST_REST_NS;
    uint64_t rollup_due = 0;
    pthread_mutex_lock(&sampler->lock);
    while (!sampler->stop) {
        rest(sampler, rest_ns);
        if (sampler->stop) {
            break;
        }
        pid_t pid = sampler->pid;
        uint64_t cost = sample_tasks(sampler, pid);
        rest_ns = rest_ns * 2 < FL_TASK_REST_NS ? rest_ns * 2 : FL_TASK_REST_NS;
        rest_ns = at_least(rest_ns, FL_REST_FACTOR * cost);
        uint64_t now = fl_proc_now_ns();
        if (now < rollup_due) {
            continue;
        }
        pthread_mutex_unlock(&sampler->lock);
        uint64_t begin = cost_ns();
        (void)sample_memory(sampler, pid);
        cost = cost_ns() - begin;
        pthread_mutex_lock(&sampler->lock);
        rollup_rest_ns = rollup_rest_ns * 2 < interval_ns ? rollup_rest_ns * 2 : interval_ns;
        rollup_due = now + at_least(rollup_rest_ns, FL_REST_FACTOR * cost);
    }
    pthread_mutex_unlock(&sampler->lock);
    return NULL;
}

int fl_sampler_start(struct fl_sampler *sampler, pid_t pid, unsigned interval_ms, bool with_nodes,
                     const char *library)
{
    memset(sampler, 0, sizeof(*sampler));
    pthread_mutex_init(&sampler->lock, NULL);
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler->wake, &by_clock);
    pthread_condattr_destroy(&by_clock);
    sampler->pid = pid;
    sampler->interval_ms = interval_ms;
    sampler->with_nodes = with_nodes;
    sampler->family.library = library;
    fl_family_update(&sampler->family, pid);
    if (interval_ms == 0) {
        return 0;
    }
    int error = pthread_create(&sampler->thread, NULL, sample_until_stopped, sampler);
    if (error != 0) {
        sampler->interval_ms = 0; /* nothing to join */
    }
    return -error;
}

void fl_sampler_focus(struct fl_sampler *sampler, pid_t pid)
{
    pthread_mutex_lock(&sampler->lock);
    fl_family_update(&sampler->family, sampler->pid); /* it is paused: now it is seen for certain */
    sampler->pid = pid;
    pthread_mutex_unlock(&sampler->lock);
}

static struct fl_usage read_helpers(struct fl_sampler *sampler, pid_t pid)
{
    (void)fl_threads_sample(&sampler->threads, pid);
    return fl_threads_sum(&sampler->threads, pid);
}

/* Read the process between two readings of the helpers that agree; when they never do, what a
 * helper faults in between counts as the application's. Called with the lock held. */
static int read_apart(struct fl_sampler *sampler, pid_t pid, struct fl_usage *all,
                      struct fl_usage *helper)
{
    struct fl_usage after = read_helpers(sampler, pid);
    int rc = 0;
    for (int i = 0; i < FL_READINGS && rc == 0; i++) {
        *helper = after;
        rc = fl_proc_read_usage(pid, 0, all, NULL);
        after = read_helpers(sampler, pid);
        if (after.minor == helper->minor && after.major == helper->major) {
            break;
        }
    }
    return rc;
}

int fl_sampler_look(struct fl_sampler *sampler, struct fl_look *out)
{
    struct fl_usage all;
    memset(out, 0, sizeof(*out));
    pthread_mutex_lock(&sampler->lock);
    pid_t pid = sampler->pid;
    int rc = read_apart(sampler, pid, &all, &out->helper);
    pthread_mutex_unlock(&sampler->lock);
    rc = rc != 0 ? rc : fl_proc_read_memory(pid, &out->memory);
    if (rc != 0) {
        return rc;
    }
    out->app = (struct fl_usage){
        .minor = all.minor - out->helper.minor,
        .major = all.major - out->helper.major,
        .user_ns = all.user_ns, /* time is the whole process's: ticks are too coarse to split */
        .sys_ns = all.sys_ns,
    };
    out->rollup = sample_memory(sampler, pid);
    return 0;
}

void fl_sampler_look_at_all(struct fl_sampler *sampler, struct fl_look *out)
{
    memset(out, 0, sizeof(*out));
    pthread_mutex_lock(&sampler->lock);
    fl_family_update(&sampler->family, sampler->pid);
    struct fl_usage all = fl_family_usage(&sampler->family);
    out->helper = fl_threads_sum(&sampler->threads, 0);
    for (size_t i = 0; i < sampler->family.count; i++) {
        struct fl_memory one;
        if (sampler->family.member[i].is_alive &&
            fl_proc_read_memory(sampler->family.member[i].pid, &one) == 0) {
            out->memory.rss += one.rss;
            out->memory.rss_peak += one.rss_peak;
        }
    }
    pthread_mutex_unlock(&sampler->lock);
    out->app = all;
    out->app.minor -= out->helper.minor < all.minor ? out->helper.minor : all.minor;
    out->app.major -= out->helper.major < all.major ? out->helper.major : all.major;
}

void fl_sampler_kill(struct fl_sampler *sampler, int signal_number)
{
    pthread_mutex_lock(&sampler->lock);
    fl_family_update(&sampler->family, sampler->pid);
    fl_family_kill(&sampler->family, signal_number);
    pthread_mutex_unlock(&sampler->lock);
}

void fl_sampler_stop(struct fl_sampler *sampler)
{
    pthread_mutex_lock(&sampler->lock);
    sampler->stop = true;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->lock);
    if (sampler->interval_ms != 0) {
        pthread_join(sampler->thread, NULL);
    }
    pthread_cond_destroy(&sampler->wake);
    pthread_mutex_destroy(&sampler->lock);
}
