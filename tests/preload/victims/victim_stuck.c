/* Goes on allocating while one of its threads is held up or gone.
 *
 *   victim_stuck TRACER MODE SEEN     modes are those of victim_tracer; `alone`: no thread is
 *                                     delayed */
#include "blocks.h"
#include "worker.h"

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>

enum { SLOTS = 8, GROWN = 24, THREADS = 2 };
static const size_t grown_len = 12 * MIB + 100 * KIB;

static void child_lives(struct block *slots, struct block *grown, size_t n, uint64_t seed)
{
    IN_CHILD
    {
        drop_all(grown, n);
        for (size_t i = 0; i < SLOTS; i++) {
            refill(&slots[i], &seed);
            drop(&slots[i]);
        }
    }
}

/* Everything a program may want of an allocator, up to 300 MiB more in the end than in the
 * beginning. */
static void go_on(void)
{
    struct block slots[SLOTS] = {{NULL, 0, 0}}, grown[GROWN];
    uint64_t seed = 99;
    pthread_t t[THREADS];

    start_churn(t, THREADS);
    for (size_t i = 0; i < GROWN; i++) {
        grown[i] = (struct block){calloc(1, grown_len), grown_len, i};
        check_zero(grown[i].p, grown_len);
        stamp(grown[i].p, grown_len, i);
        for (size_t k = 0; k < SLOTS; k++) {
            refill(&slots[k], &seed);
        }
        if (i % 8 == 3) {
            child_lives(slots, grown, i + 1, seed);
        }
        if (i % 8 == 7) {
            malloc_trim(0);
        }
    }
    char *all = realloc(grown[0].p, 10 * grown_len); /* by moving, by copying, in place */
    CHECK(is_stamped_part(all, grown_len, grown_len, 0));
    grown[0].p = realloc(all, grown_len);
    end_churn(t, THREADS);
    drop_all(grown, GROWN);
    drop_all(slots, SLOTS);
}

/* One letter, as in /proc/PID/status; '-' when there is no such thread. */
static char state_of(pid_t tid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    char letter = proc_letter(path, "State:\t");
    return letter != '\0' ? letter : '-';
}

/* Returns when it is ready. What it says besides is for the reader of stdout, even if this program
 * hangs. */
static void start_tracer(char **argv, pid_t tid)
{
    char numbers[2][16], ready[6];
    char *args[] = {argv[1], argv[2], numbers[0], numbers[1], argv[3], NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int ends[2];
    pid_t pid;

    snprintf(numbers[0], sizeof numbers[0], "%d", getpid());
    snprintf(numbers[1], sizeof numbers[1], "%d", tid);
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP); /* what stops our group spares it */
    CHECK(posix_spawn(&pid, argv[1], &files, &attr, args, env) == 0);
    close(ends[1]);
    CHECK(read(ends[0], ready, sizeof ready) == sizeof ready && memcmp(ready, "ready\n", 6) == 0);
}

int main(int argc, char **argv)
{
    pid_t tid = 0;

    CHECK(argc == 4);
    CHECK(setpgid(0, 0) == 0);
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* refused where it is not needed */
    if (strcmp(argv[2], "alone") != 0) {
        wait_for_worker();
        tid = atoi(worker_id);
        start_tracer(argv, tid);
    }
    printf("before %c\n", state_of(tid));
    go_on();
    puts("over");
    fflush(stdout); /* what the tracer says from now on comes too late for the state */
    printf("after %c\n", state_of(tid));
    return 0;
}
