/* Takes blocks until there are no more, frees them, takes again. Prints how many MiB it got each
 * time.
 *
 *   victim_fill BLOCK_KIB TOUCH_PERCENT MAX_MIB [small | late LIMIT_MIB | turns SMALL_MIB]
 *
 * small: then MAX_MIB of blocks of 1000 bytes. late: RLIMIT_AS is set by the program itself, after
 * its first block. turns: and SMALL_MIB of small ones, three times; under glibc each finds the
 * other's memory. */
#include "victim.h"

struct block {
    struct block *next;
};

static size_t fill(size_t len, size_t touch, size_t max_mib, struct block **out)
{
    size_t n = 0;

    *out = NULL;
    while (n * len < max_mib * MIB) {
        errno = 0;
        struct block *b = malloc(len);
        if (b == NULL) {
            CHECK(errno == ENOMEM);
            break;
        }
        memset(b, 1, len * touch / 100);
        b->next = *out;
        *out = b;
        n++;
    }
    return n * len / MIB;
}

static void empty(struct block *b)
{
    while (b != NULL) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
}

int main(int argc, char **argv)
{
    size_t len = strtoul(argv[1], NULL, 10) * KIB, touch = strtoul(argv[2], NULL, 10);
    size_t max = strtoul(argv[3], NULL, 10);
    const char *then = argc > 4 ? argv[4] : "";
    struct block *b;
    static char buffer[4096];

    setvbuf(stdout, buffer, _IOFBF,
            sizeof buffer); /* printf must not want memory when there is none */
    if (strcmp(then, "late") == 0) {
        struct rlimit limit = {strtoul(argv[5], NULL, 10) * MIB, RLIM_INFINITY};
        free(malloc(len));
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    }
    for (int round = 0; round < 3 && strcmp(then, "turns") == 0; round++) {
        printf("large %zu ", fill(len, touch, max, &b));
        empty(b);
        printf("small %zu\n", fill(1000, 100, strtoul(argv[5], NULL, 10), &b));
        empty(b);
    }
    printf("first %zu\n", fill(len, touch, max, &b));
    empty(b);
    printf("again %zu\n", fill(len, touch, max, &b));
    empty(b);
    if (strcmp(then, "small") == 0 || strcmp(then, "late") == 0) {
        printf("small %zu\n", fill(1000, 100, max, &b));
        empty(b);
    }
    return 0;
}
