/* A thread with the smallest stack that there is asks, frees, and ends the process.
 *
 *   victim_small_stack blocks|stats */
#include "victim.h"

static void blocks(void)
{
    char *p = malloc(3 * MIB), *q = calloc(1, 20 * MIB);

    CHECK(p != NULL && q != NULL);
    stamp(p, 3 * MIB, 1);
    stamp(q, 20 * MIB, 2);
    p = realloc(p, 90 * KIB);
    q = realloc(q, 300 * MIB);
    CHECK(p != NULL && q != NULL && is_stamped_part(p, 90 * KIB, 3 * MIB, 1));
    CHECK(is_stamped_part(q, 20 * MIB - 1, 20 * MIB, 2));
    free(q);
    CHECK(malloc_trim(0) >= 0);
    free(p);
    CHECK((p = aligned_alloc(2 * MIB, 64 * MIB)) != NULL);
    free(p);
}

static void *ends(void *arg)
{
    blocks();
    if (strcmp(arg, "stats") == 0) {
        malloc_stats();
    }
    exit(0);
}

int main(int argc, char **argv)
{
    pthread_attr_t small;
    pthread_t thread;

    CHECK(argc == 2 && pthread_attr_init(&small) == 0);
    CHECK(pthread_attr_setstacksize(&small, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
    CHECK(pthread_create(&thread, &small, ends, argv[1]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 2;
}
