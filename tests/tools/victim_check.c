/* A program to be looked at, and hardly ever run: it says that it is there, and waits for the end
 * of its standard input. With a word it forgets its environment first. OWN_JEMALLOC, OWN_GO: with
 * what such an allocator beside malloc is known by. */
#include <string.h>
#include <unistd.h>

#ifdef OWN_JEMALLOC
__attribute__((used)) static const char conf[] = "VICTIM_MALLOC_CONF";
#endif

#ifdef OWN_GO
__attribute__((used, section(".note.go.buildid"))) static const int id = 1;
#endif

int main(int argc, char **argv, char **environment)
{
    char byte;

    for (size_t i = 0; argc > 1 && environment[i] != NULL; i++) {
        memset(environment[i], 0, strlen(environment[i]));
    }
    (void)argv;
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}
