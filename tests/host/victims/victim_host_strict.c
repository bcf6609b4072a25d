/* Goes on with read, write and exit alone (SECCOMP_MODE_STRICT), and with what memory is free.
 *
 *   victim_host_strict BYTES HELD prctl|seccomp
 *
 * Eight blocks of so many bytes were freed before, each with a small one behind it; HELD are freed
 * after.
 * Says how far it got. */
#include "victim.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { MOST = 64, ROUNDS = 3, FREED = 8 };

static void say(const char *text)
{
    (void)write(1, text, strlen(text));
}

int main(int argc, char **argv)
{
    char *held[MOST], *first[FREED];

    CHECK(argc == 4);
    size_t n = (size_t)atol(argv[1]);
    int count = atoi(argv[2]);
    for (int i = 0; i < FREED; i++) {
        first[i] = filled(n);
        (void)filled(100);
    }
    for (int i = 0; i < count; i++) {
        held[i] = filled(n);
    }
    FREE_ALL(first, FREED);
    CHECK((strcmp(argv[3], "prctl") == 0
               ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)
               : syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)) == 0);
    say("strict\n");
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < FREED; k++) {
            first[k] = filled(n);
        }
        FREE_ALL(first, FREED);
    }
    say("asked\n");
    FREE_ALL(held, count);
    say("freed\n");
    char *zero = calloc(1, n);
    say(zero != NULL && zero[n - 1] == 0 ? "cleared\n" : "none\n");
    free(zero);
    say("done\n");
    return (int)syscall(SYS_exit, 0);
}
