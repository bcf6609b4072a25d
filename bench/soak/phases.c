/* What each phase of an epoch does. Every thread runs mix_run_phase; thread 0 is the one that forks
 * and starts threads.
 *
 * State: the blocks that outlive epochs and those of the steady steps. No lock: thread 0's alone,
 * and passed on at a barrier. */
#include "mix.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEADY_SIZES = 24, COMING = 8, PER_COMING = 4, CHILD_SECONDS = 120 };

static size_t steady_len[MIX_THREADS][STEADY_SIZES];
static struct mix_block steady[MIX_THREADS][STEADY_SIZES];
static struct mix_block kept[MIX_KEPT];
static uint64_t kept_random = 88172645463325252u;

/* The sizes of the steady steps: log-uniform up to 64 MiB, together three quarters of a thread's
 * share. */
void mix_phases_init(void)
{
    size_t share = ((size_t)mix_options.live_mib << 20) / (size_t)mix_options.threads / 4 * 3;
    for (int t = 0; t < mix_options.threads; t++) {
        uint64_t random = mix_options.seed + 7919 * (uint64_t)(t + 1);
        size_t sum = 0;
        for (int i = 0; i < STEADY_SIZES; i++) {
            size_t len = mix_draw_len(&random, 65536, share / 4);
            steady_len[t][i] = sum + len <= share ? len : 0;
            sum += steady_len[t][i];
        }
    }
}

/* Fixed sizes: all taken, written and checked; the last third is freed by the next thread. */
static void steady_step(struct mix_worker *w)
{
    int t = w->index, next = (t + 1) % mix_options.threads;
    const int own = STEADY_SIZES * 2 / 3;
    for (int i = 0; i < STEADY_SIZES; i++) {
        if (steady_len[t][i] != 0) {
            (void)mix_take(&steady[t][i], steady_len[t][i], steady_len[t][i] * 31 + (size_t)i);
        }
    }
    for (int i = 0; i < own; i++) {
        int k = (i * 7 + 3) % own;
        if (steady[t][k].base != NULL) {
            mix_put(&steady[t][k]);
        }
    }
    mix_barrier();
    for (int i = own; i < STEADY_SIZES; i++) {
        if (steady[next][i].base != NULL) {
            mix_put(&steady[next][i]);
        }
    }
    mix_barrier();
}

static void phase_steady(struct mix_worker *w)
{
    int steps = mix_scaled(12);
    steps = steps < 6 ? 6 : steps < MIX_STEPS ? steps : MIX_STEPS;
    for (int s = 0; s < steps; s++) {
        double start = mix_now_s();
        long before = mix_thread_faults();
        steady_step(w);
        if (s >= steps / 2) {
            atomic_fetch_add(&mix_epoch.steady_faults, mix_thread_faults() - before);
        }
        if (w->index == 0) {
            mix_epoch.step_ms[s] = (mix_now_s() - start) * 1e3;
        }
    }
    if (w->index == 0) {
        mix_epoch.steps = steps;
    }
}

static void operate(struct mix_worker *w, int times)
{
    for (int i = 0; i < times; i++) {
        mix_operate(w);
    }
}

/* A thread that comes, takes some blocks, leaves half of them behind and goes with the others in
 * its cache. */
static void *come_and_go(void *arg)
{
    uint64_t random = *(uint64_t *)arg;
    struct mix_block own[PER_COMING] = {0};
    for (int i = 0; i < PER_COMING; i++) {
        size_t len = mix_draw_len(&random, 65536, (size_t)8 << 20);
        if (mix_reserve(len)) {
            if (!mix_take(&own[i], len, mix_draw(&random, UINT64_MAX))) {
                own[i].len = 0;
            }
            atomic_fetch_sub(&mix_live, len - own[i].len);
        }
    }
    for (int i = 0; i < PER_COMING; i++) {
        if (own[i].base == NULL) {
            continue;
        }
        if (i % 2 == 0) {
            mix_hand_over(&own[i], &random);
        } else {
            atomic_fetch_sub(&mix_live, own[i].len);
            mix_put(&own[i]);
        }
    }
    atomic_fetch_add(&mix_epoch.faults[MIX_COMING], mix_thread_faults());
    return NULL;
}

static void phase_coming(struct mix_worker *w)
{
    if (w->index != 0) {
        operate(w, mix_scaled(60));
        return;
    }
    for (int round = 0; round < mix_scaled(10); round++) {
        pthread_t thread[COMING];
        uint64_t random[COMING];
        int started = 0;
        for (; started < COMING; started++) {
            random[started] = mix_draw(&w->random, UINT64_MAX - 1) + 1;
            if (pthread_create(&thread[started], NULL, come_and_go, &random[started]) != 0) {
                mix_error("a thread cannot be started");
                break;
            }
        }
        for (int i = 0; i < started; i++) {
            pthread_join(thread[i], NULL);
        }
        mix_epoch.threads_started += started;
    }
}

/* The child: everything that was written before the fork is there; it allocates, resizes and frees,
 * also what it inherited. An alarm ends it if it hangs. */
_Noreturn static void child(uint64_t random)
{
    long errors = atomic_load(&mix_errors);
    alarm(CHILD_SECONDS);
    mix_unlock_table();
    mix_check_table();
    for (int i = 0; i < MIX_KEPT; i++) {
        if (kept[i].base != NULL) {
            mix_check(&kept[i]);
        }
    }
    mix_free_some(2);
    for (int how = 0; how < MIX_HOWS; how++) {
        struct mix_block b;
        uint64_t seed = mix_draw(&random, UINT64_MAX / 2) / MIX_HOWS * MIX_HOWS + (uint64_t)how;
        if (mix_take(&b, mix_draw_len(&random, 65536, (size_t)4 << 20), seed)) {
            (void)mix_resize(&b, mix_draw_len(&random, 65536, (size_t)8 << 20));
            mix_put(&b);
        }
    }
    _exit(atomic_load(&mix_errors) != errors || mix_spoil_child() ? 1 : 0);
}

static void reap(pid_t pid)
{
    int status = 0;
    pid_t got;
    do {
        got = waitpid(pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    if (got != pid || status != 0) {
        mix_error("a child ended with status %#x", (unsigned)status);
    }
}

/* Thread 0 forks between its operations and goes on with them beside the child; so do the
 * others. */
static void phase_forking(struct mix_worker *w)
{
    if (w->index != 0) {
        operate(w, mix_scaled(40));
        return;
    }
    for (int i = 0; i < mix_scaled(5); i++) {
        mix_lock_table(); /* so that the child finds it whole */
        pid_t pid = fork();
        if (pid == 0) {
            child(mix_draw(&w->random, UINT64_MAX - 1) + 1);
        }
        mix_unlock_table();
        if (pid < 0) {
            mix_error("fork: %s", strerror(errno));
            return;
        }
        mix_epoch.forks++;
        operate(w, 8);
        reap(pid);
    }
}

/* Thread 0 alone: what outlives epochs is as it was, and a little of it is replaced. */
static void mind_the_kept(void)
{
    const size_t high = ((size_t)mix_options.live_mib << 20) / 192; /* 8 MiB of 1.5 GiB */
    for (int i = 0; i < MIX_KEPT; i++) {
        bool is_due = (i + mix_epoch.number) % 4 == 0;
        if (kept[i].base == NULL) {
            (void)mix_take(&kept[i], high / 2 + (size_t)i, mix_draw(&kept_random, UINT64_MAX));
        } else if (is_due && i % 2 == 0) {
            mix_put(&kept[i]);
            (void)mix_take(&kept[i], high / 2 + (size_t)i, mix_draw(&kept_random, UINT64_MAX));
        } else if (is_due) {
            mix_check(&kept[i]);
            (void)mix_resize(&kept[i],
                             high + high / 4 - kept[i].len); /* a half, then three quarters */
        } else {
            mix_check(&kept[i]);
        }
    }
    if (mix_options.spoil != NULL) {
        mix_spoil(kept);
    }
}

static void phase_idle(struct mix_worker *w)
{
    mix_drain();
    mix_barrier();
    if (w->index == 0) {
        if (atomic_load(&mix_live) != 0) {
            mix_error("the program's own count of live bytes ends with %zu", (size_t)mix_live);
        }
        mind_the_kept();
        const struct timespec idle = {mix_options.idle_ms / 1000,
                                      mix_options.idle_ms % 1000 * 1000000L};
        nanosleep(&idle, NULL);
    }
}

void mix_run_phase(enum mix_phase phase, struct mix_worker *w)
{
    long before = mix_thread_faults();
    switch (phase) {
    case MIX_STEADY:
        phase_steady(w);
        break;
    case MIX_VARY:
        operate(w, mix_scaled(160));
        break;
    case MIX_COMING:
        phase_coming(w);
        break;
    case MIX_FORKING:
        phase_forking(w);
        break;
    default:
        phase_idle(w);
    }
    atomic_fetch_add(&mix_epoch.faults[phase], mix_thread_faults() - before);
}
