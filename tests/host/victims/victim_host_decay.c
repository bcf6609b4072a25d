/* main ends by pthread_exit; what its other thread frees then still goes back. Says "small" when it
 * has. */
#include "worker.h"

#include <stdatomic.h>

static atomic_bool main_is_over;

static void is_over(void *arg)
{
    (void)arg;
    main_is_over = 1;
}

/* By way of this thread: the kernel shows no memory of a process under the id of a main thread that
 * has ended. */
static size_t resident_mib(void)
{
    return proc_number("/proc/thread-self/statm", " ") / 256;
}

static void *other(void *arg)
{
    enum { BLOCKS = 10 };
    FL_AWAIT(main_is_over && proc_letter("/proc/self/status", "State:\t") == 'Z');
    char *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = written(40 * MIB, i);
    }
    CHECK(resident_mib() >= 40 * (size_t)BLOCKS);
    FREE_ALL(block, BLOCKS);
    FL_AWAIT(resident_mib() <= 48);
    dprintf(1, "small\n");
    return arg;
}

int main(int argc, char **argv)
{
    pthread_key_t key;
    pthread_t thread;

    CHECK(argc == 2 && pthread_key_create(&key, is_over) == 0);
    CHECK(pthread_setspecific(key, &key) == 0);
    CHECK(pthread_create(&thread, NULL, other, NULL) == 0);
    if (strcmp(argv[1], "had_worker") == 0) {
        use(200 * MIB);
    }
    pthread_exit(NULL);
}
