/* The main thread ends alone, by pthread_exit; the process has to end with its last thread.
 *
 *   victim_last_thread main|other      which of the two lives longer */
#include "await.h"
#include "victim.h"

/* A main thread that has ended is a zombie until the last one ends. */
static int main_is_over(void)
{
    return proc_letter("/proc/self/status", "State:\t") == 'Z';
}

static void *other(void *arg)
{
    use(32 * MIB);
    if (arg != NULL) {
        FL_AWAIT(main_is_over());
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    CHECK(argc == 2);
    int longer = strcmp(argv[1], "other") == 0;
    CHECK(pthread_create(&thread, NULL, other, longer ? &thread : NULL) == 0);
    use(32 * MIB);
    if (!longer) {
        pthread_join(thread, NULL);
    }
    pthread_exit(NULL);
}
