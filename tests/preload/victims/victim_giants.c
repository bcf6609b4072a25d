/* realloc of blocks that are too large to be populated: what was never touched must not become
 * memory, nor be copied.
 *
 *   victim_giants shrunk|moved */
#include "victim.h"

static size_t resident_mib(void)
{
    size_t total, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    CHECK(f != NULL && fscanf(f, "%zu %zu", &total, &resident) == 2);
    fclose(f);
    return resident * 4096 / MIB;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    char *p = malloc(6 * GIB);
    CHECK(p != NULL);
    stamp(p, 100 * MIB, 7);
    if (strcmp(argv[1], "shrunk") == 0) {
        p = realloc(p, 2 * GIB + 12345);
        CHECK(p != NULL && malloc_usable_size(p) < 3 * GIB);
    } else {
        char *behind = malloc(6 * GIB); /* so that the first cannot grow where it is */
        CHECK(behind != NULL);
        p = realloc(p, 7 * GIB);
        CHECK(p != NULL && malloc_usable_size(p) >= 7 * GIB);
        p[7 * GIB - 1] = 1;
        free(behind);
    }
    CHECK(is_stamped_part(p, 100 * MIB - 1, 100 * MIB, 7));
    CHECK(resident_mib() < 400);
    free(p);
    CHECK(resident_mib() < 200);
    return 0;
}
