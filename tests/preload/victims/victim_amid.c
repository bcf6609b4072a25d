/* A thread's first large block, while another thread's is being served, which takes some time: the
 * program's own pthread_key_create(3) does, which is called by who needs a key at that time.
 *
 *   victim_amid [lock]
 *
 * lock: the second thread holds what the first one's wants, until it has its block. */
#include "victim.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { MANY = 5000 };

static _Atomic bool armed, amid;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static bool locks;

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    static const struct timespec some = {0, 5000000};
    int (*real)(pthread_key_t *, void (*)(void *)) =
        (int (*)(pthread_key_t *, void (*)(void *)))dlsym(RTLD_NEXT, "pthread_key_create");

    if (atomic_exchange(&armed, false)) {
        atomic_store(&amid, true);
        if (locks) {
            pthread_mutex_lock(&held);
            pthread_mutex_unlock(&held);
        } else {
            nanosleep(&some, NULL);
        }
    }
    return real(key, destructor);
}

static void *second(void *unused)
{
    if (locks) {
        pthread_mutex_lock(&held);
    }
    atomic_store(&armed, true);
    while (!atomic_load(&amid)) {
        static const struct timespec soon = {0, 100000};
        nanosleep(&soon, NULL);
    }
    char *p = written(MIB, 2);
    for (int i = 0; locks && i < MANY;
         i++) { /* it waits once: else for longer than a test may take */
        free(malloc(MIB));
    }
    if (locks) {
        pthread_mutex_unlock(&held);
    }
    CHECK(is_stamped(p, MIB, 2));
    free(p);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;

    locks = argc > 1 && strcmp(argv[1], "lock") == 0;
    CHECK(pthread_create(&t, NULL, second, NULL) == 0);
    while (!atomic_load(&armed)) {
    }
    char *p = taken(MIB);
    atomic_store(&amid, true); /* no key was wanted */
    stamp(p, MIB, 1);
    CHECK(pthread_join(t, NULL) == 0);
    CHECK(is_stamped(p, MIB, 1));
    free(p);
    return 0;
}
