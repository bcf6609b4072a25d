/* The main thread ends alone, by pthread_exit; the process has to end with its last thread.
 *
 *   victim_last_thread main|other      which of the two lives longer */
#include "victim.h"

#include <pthread.h>

static void use_memory(void)
{
    char *p = malloc(32 * MIB);

    CHECK(p != NULL);
    memset(p, 1, 32 * MIB);
    free(p);
}

static void *other(void *arg)
{
    use_memory();
    if (arg != NULL) {
        usleep(
            100000); /* so that main is gone by then, mostly; either way the process has to end */
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    CHECK(argc == 2);
    int longer = strcmp(argv[1], "other") == 0;
    CHECK(pthread_create(&thread, NULL, other, longer ? &thread : NULL) == 0);
    use_memory();
    if (!longer) {
        pthread_join(thread, NULL);
    }
    pthread_exit(NULL);
}
