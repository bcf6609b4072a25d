/* In each of many children, whose library has not started, threads begin a step at once: whichever
 * of them starts the library, none is told that there are no steps. */
#include "victim.h"

#include <dlfcn.h>

enum { CHILDREN = 200, THREADS = 8 };

static int (*begin)(void *), (*end)(void *);
static pthread_barrier_t together;

static void *step(void *unused)
{
    (void)pthread_barrier_wait(&together);
    CHECK(begin(NULL) == 0);
    free(malloc(MIB));
    CHECK(end(NULL) == 0);
    return unused;
}

static void child(void)
{
    pthread_t t[THREADS];

    CHECK(pthread_barrier_init(&together, NULL, THREADS) == 0);
    start_threads(t, THREADS, step);
    join_threads(t, THREADS);
}

int main(void)
{
    *(void **)&begin = dlsym(RTLD_DEFAULT, "fl_step_begin");
    *(void **)&end = dlsym(RTLD_DEFAULT, "fl_step_end");
    CHECK(begin != NULL && end != NULL);
    for (int i = 0; i < CHILDREN; i++) {
        IN_CHILD
        {
            child();
        }
    }
    return 0;
}
