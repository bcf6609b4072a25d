/* Frees a large block in a handler that interrupts the next allocator with its lock held
 * (victim_locked_next.so). */
#include "victim.h"

#include <dlfcn.h>
#include <signal.h>

static char *large;

static void on_signal(int sig)
{
    (void)sig;
    free(large);
}

int main(int argc, char **argv)
{
    int *armed = dlsym(RTLD_DEFAULT, "trap_armed");
    CHECK(armed != NULL && signal(SIGUSR1, on_signal) != SIG_ERR);
    size_t n = strtoul(argc > 1 ? argv[1] : "1", NULL, 10) * MIB;
    large = written(n, 1);
    *armed = 1;
    char *small = malloc(100);
    CHECK(small != NULL && *armed == 0);
    free(small);
    return 0;
}
