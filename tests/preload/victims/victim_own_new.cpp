// A program with operators of its own, or (OWN_NEW undefined) with those of a library that it is
// linked to: counts what they see, in threads and in a child too.
#include "use_new.h"
#ifdef OWN_NEW
#include "own_new.h"
static long made()
{
    return own_made;
}
static long live()
{
    return own_live;
}
#else
#include <cstdio>
#include <unistd.h>
long made();
long live();
#endif
#include <sys/wait.h>
#include <thread>

int main()
{
    use_every_form();
    std::thread t[3];
    for (auto &one : t) {
        one = std::thread(use_every_form);
    }
    for (auto &one : t) {
        one.join();
    }
    std::printf("made %ld live %ld\n", made(), live());
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        use_every_form();
        std::printf("made %ld live %ld\n", made(), live());
        std::fflush(stdout);
        _exit(0);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
