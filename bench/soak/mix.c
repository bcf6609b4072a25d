/* mix: the long-lived process of the soak. Options, threads, the cycle of phases, a line for each
 * epoch.
 *
 *   mix [--seconds S] [--epochs N] [--threads N] [--live-mib N] [--work PERCENT] [--idle-ms N]
 *   [--seed N] [--spoil KIND]
 *
 * Each epoch ends in a line "EPOCH {json}" on stdout. Exit status 1 when anything was not as it
 * should be. */
#include "mix.h"

#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { ERRORS_SHOWN = 20 };

struct mix_options mix_options = {
    .threads = 4, .live_mib = 1536, .work_pct = 100, .idle_ms = 3000, .seed = 1};
struct mix_epoch mix_epoch;
_Atomic long mix_errors;

static const char *const phase_name[MIX_PHASES] = {"steps", "vary", "coming", "forking", "idle"};
static struct mix_worker workers[MIX_THREADS];
static pthread_barrier_t barrier;
static bool is_over; /* thread 0's, read by the others after a barrier */

void mix_barrier(void)
{
    pthread_barrier_wait(&barrier);
}

/* One write, no stdio: a forked child comes here too. */
void mix_error(const char *format, ...)
{
    char text[256];
    if (atomic_fetch_add(&mix_errors, 1) >= ERRORS_SHOWN) {
        return;
    }
    int n = snprintf(text, sizeof text, "mix: %d: epoch %d: ", (int)getpid(), mix_epoch.number);
    va_list arguments;
    va_start(arguments, format);
    n += vsnprintf(text + n, sizeof text - (size_t)n - 1, format, arguments);
    va_end(arguments);
    n = n < (int)sizeof text - 1 ? n : (int)sizeof text - 2;
    text[n] = '\n';
    if (write(STDERR_FILENO, text, (size_t)n + 1) < 0) {
        _exit(3); /* it would not be noticed */
    }
}

double mix_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

long mix_thread_faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_minflt;
}

int mix_scaled(int n)
{
    int scaled = n * mix_options.work_pct / 100;
    return scaled < 1 ? 1 : scaled;
}

static double read_mib(const char *key)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = atol(line + strlen(key));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return (double)kib / 1024;
}

/* VmHWM begins anew: proc_pid_clear_refs(5), since Linux 4.0. */
static void reset_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "5", 1) != 1) {
        fprintf(stderr, "mix: VmHWM cannot be reset\n");
        exit(2);
    }
    close(fd);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_epoch(double seconds)
{
    long faults = 0;
    qsort(mix_epoch.step_ms, (size_t)mix_epoch.steps, sizeof(double), compare);
    printf("EPOCH {\"epoch\": %d, \"seconds\": %.3f, \"peak_mib\": %.2f, \"floor_mib\": %.2f, "
           "\"live_mib\": %.2f, \"step_ms\": %.2f, \"steady_faults\": %ld, \"operations\": %ld, "
           "\"forks\": %d, "
           "\"threads_started\": %d, \"errors\": %ld",
           mix_epoch.number, seconds, read_mib("VmHWM:"), read_mib("VmRSS:"),
           (double)atomic_load(&mix_epoch.peak_live) / 1048576,
           mix_epoch.step_ms[mix_epoch.steps / 2], (long)mix_epoch.steady_faults,
           (long)mix_epoch.operations, mix_epoch.forks, mix_epoch.threads_started,
           atomic_load(&mix_errors));
    for (int i = 0; i < MIX_PHASES; i++) {
        printf(", \"%s_s\": %.3f, \"%s_faults\": %ld", phase_name[i], mix_epoch.phase_s[i],
               phase_name[i], (long)mix_epoch.faults[i]);
        faults += i == MIX_FORKING ? 0 : mix_epoch.faults[i]; /* those hang on who writes first */
    }
    printf(", \"faults\": %ld}\n", faults);
    fflush(stdout);
}

static void *work(void *arg)
{
    struct mix_worker *w = arg;
    for (;;) {
        mix_barrier();
        if (is_over) {
            return NULL;
        }
        for (int phase = 0; phase < MIX_PHASES; phase++) {
            double start = mix_now_s();
            mix_run_phase((enum mix_phase)phase, w);
            mix_barrier();
            if (w->index == 0) {
                mix_epoch.phase_s[phase] = mix_now_s() - start;
            }
        }
        if (w->index == 0) {
            return NULL; /* the epoch's end is run()'s */
        }
    }
}

static void run(void)
{
    double begin = mix_now_s();
    for (int e = 0; mix_options.epochs == 0 || e < mix_options.epochs; e++) {
        double start = mix_now_s();
        if (mix_options.seconds > 0 && start - begin >= mix_options.seconds) {
            break;
        }
        memset(&mix_epoch, 0, sizeof mix_epoch);
        mix_epoch.number = e;
        reset_peak();
        (void)work(&workers[0]);
        print_epoch(mix_now_s() - start);
    }
    is_over = true;
    mix_barrier();
}

static const struct option option[] = {
    {"seconds", required_argument, NULL, 's'},
    {"epochs", required_argument, NULL, 'e'},
    {"threads", required_argument, NULL, 't'},
    {"live-mib", required_argument, NULL, 'l'},
    {"work", required_argument, NULL, 'w'},
    {"idle-ms", required_argument, NULL, 'i'},
    {"seed", required_argument, NULL, 'r'},
    {"spoil", required_argument, NULL, 'p'},
    {0},
};

static bool parse(int argc, char **argv)
{
    int key;
    while ((key = getopt_long(argc, argv, "", option, NULL)) != -1) {
        switch (key) {
        case 's':
            mix_options.seconds = atof(optarg);
            break;
        case 'e':
            mix_options.epochs = atoi(optarg);
            break;
        case 't':
            mix_options.threads = atoi(optarg);
            break;
        case 'l':
            mix_options.live_mib = atoi(optarg);
            break;
        case 'w':
            mix_options.work_pct = atoi(optarg);
            break;
        case 'i':
            mix_options.idle_ms = atoi(optarg);
            break;
        case 'r':
            mix_options.seed = strtoull(optarg, NULL, 10);
            break;
        case 'p':
            mix_options.spoil = optarg;
            break;
        default:
            return false;
        }
    }
    return optind == argc && (mix_options.seconds > 0 || mix_options.epochs > 0) &&
           mix_options.threads > 0 && mix_options.threads <= MIX_THREADS &&
           mix_options.live_mib >= 16 && mix_options.work_pct > 0 && mix_options.idle_ms >= 0 &&
           (mix_options.spoil == NULL || mix_spoil_known(mix_options.spoil));
}

int main(int argc, char **argv)
{
    pthread_t thread[MIX_THREADS];
    if (!parse(argc, argv)) {
        fprintf(
            stderr,
            "Usage: mix --seconds S | --epochs N  [--threads N] [--live-mib N] [--work PERCENT]\n"
            "           [--idle-ms N] [--seed N]\n"
            "           [--spoil memory|faults|descriptors|maps|threads|contents|child|hang]\n");
        return 2;
    }
    mix_phases_init();
    pthread_barrier_init(&barrier, NULL, (unsigned)mix_options.threads);
    for (int t = 0; t < mix_options.threads; t++) {
        workers[t].index = t;
        workers[t].random = mix_options.seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)t + 1;
        if (t > 0 && pthread_create(&thread[t], NULL, work, &workers[t]) != 0) {
            fprintf(stderr, "mix: a thread cannot be started\n");
            return 2;
        }
    }
    run();
    for (int t = 1; t < mix_options.threads; t++) {
        pthread_join(thread[t], NULL);
    }
    return atomic_load(&mix_errors) != 0 ? 1 : 0;
}
