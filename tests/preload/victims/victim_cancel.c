/* A thread with a cancellation pending calls what reports on malloc, or malloc's family, and then
 * waits to be cancelled. Expected: the streams are free, and what glibc says of `behind`: was the
 * thread cancelled behind the call, or in it? */
#include "victim.h"

static pthread_barrier_t pending;
static int behind;
static const char *mode;

static void call(void)
{
    if (strcmp(mode, "stats") == 0) {
        malloc_stats();
    } else if (strcmp(mode, "info") == 0) {
        CHECK(malloc_info(0, stderr) == 0);
    } else if (strcmp(mode, "numbers") == 0) {
        (void)mallinfo2();
        malloc_trim(0);
        (void)mallopt(M_MXFAST, 64);
    } else {
        void *p = NULL;
        free(realloc(malloc(MIB), 2 * MIB));
        free(calloc(1, 40 * MIB));
        CHECK(posix_memalign(&p, 64, MIB) == 0);
        CHECK(malloc_usable_size(p) >= MIB);
        free(p);
    }
}

static void *run(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&pending);
    call();
    behind = 1;
    for (;;) {
        pause();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t;
    void *result;

    mode = argc > 1 ? argv[1] : "";
    free(malloc(MIB));
    pthread_barrier_init(&pending, NULL, 2);
    CHECK(pthread_create(&t, NULL, run, NULL) == 0);
    CHECK(pthread_cancel(t) == 0);
    pthread_barrier_wait(&pending);
    CHECK(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
    alarm(20);
    fprintf(stderr, "alive\n");
    printf("behind %d\n", behind);
    return 0;
}
