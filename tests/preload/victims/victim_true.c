/* Small requests alone, or none. Says what the process looks like. */
#include "victim.h"

int main(int argc, char **argv)
{
    char maps[16384];
    size_t lines = 0, n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

    for (size_t i = 0; i < n; i++) {
        char *p = malloc(i % 60000 + 1);
        p[0] = 1;
        free(realloc(p, i % 3000 + 1));
        free(calloc(1, i % 50000 + 1));
    }
    int fd = open("/proc/self/maps", O_RDONLY);
    for (ssize_t got; (got = read(fd, maps, sizeof maps)) > 0;) {
        for (ssize_t i = 0; i < got; i++) {
            lines += maps[i] == '\n';
        }
    }
    printf("threads %zu maps %zu own %zu\n", proc_number("/proc/self/status", "Threads:"), lines,
           proc_number("/proc/self/status", "RssAnon:"));
    return 0;
}
