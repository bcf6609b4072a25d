/* The main thread ends alone, by pthread_exit: the process has to end with its last thread, and
 * what that frees meanwhile goes back. */
#include "worker.h"

/* A main thread that has ended is a zombie until the last one ends. */
static int main_is_over(void)
{
    return proc_letter("/proc/self/status", "State:\t") == 'Z';
}

static void *other_ends_later(void *arg)
{
    use(32 * MIB);
    FL_AWAIT(main_is_over());
    return arg;
}

static void *other_ends(void *arg)
{
    use(32 * MIB);
    return arg;
}

static void end_beside(void *(*other)(void *))
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, other, NULL) == 0);
    use(32 * MIB);
    if (other == other_ends) {
        pthread_join(thread, NULL);
    }
    pthread_exit(NULL);
}

MODE_IS(main_is_last, end_beside(other_ends))
MODE_IS(other_is_last, end_beside(other_ends_later))

/* By way of this thread: the kernel shows no memory of a process under the id of a main thread that
 * has ended. */
static size_t resident_mib(void)
{
    return proc_number("/proc/thread-self/statm", " ") / 256;
}

static void *other_frees_later(void *arg)
{
    enum { BLOCKS = 10 };
    char *block[BLOCKS];

    FL_AWAIT(main_is_over());
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = written(40 * MIB, i);
    }
    CHECK(resident_mib() >= 40 * (size_t)BLOCKS);
    FREE_ALL(block, BLOCKS);
    FL_AWAIT(resident_mib() <= 48);
    dprintf(1, "small\n");
    return arg;
}

static void end_before_it_decays(size_t had)
{
    pthread_t thread;

    use(had);
    CHECK(pthread_create(&thread, NULL, other_frees_later, NULL) == 0);
    pthread_exit(NULL);
}

MODE_IS(decays_by_the_worker_that_was, end_before_it_decays(200 * MIB))
MODE_IS(decays_by_a_new_worker, end_before_it_decays(1))

MAIN()
