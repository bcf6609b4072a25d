/* Takes large blocks until its limit is met, frees some, and takes small ones until there are no
 * more; then large ones again, and once more when all are free. Prints how many MiB it got each
 * time.
 *
 *   victim_room RESOURCE WHEN BLOCK_KIB FREED SMALL HOW WHO
 *
 * RESOURCE: as, data; WHEN: own, the program limits itself after its first block, or other, another
 * process does; else the limit is there. FREED: every so many-th block, or 0: any. SMALL: bytes.
 * HOW: malloc, calloc, realloc, memalign, posix_memalign, new. WHO: main, thread, both, child. */
#include "victim.h"

#include <stdbool.h>
#include <sys/mman.h>

enum { LIMIT_MIB = 100, BLOCKS_MOST = 8000 };

/* Of the C++ library, where the program was linked with it. */
extern void *operator_new(size_t n, const void *nothrow) __asm__("_ZnwmRKSt9nothrow_t")
    __attribute__((weak));
extern const char nothrow __asm__("_ZSt7nothrow") __attribute__((weak));

/* What another thread, or a child, got. */
struct got {
    size_t bytes;
    void *last;
};

static char **argument;
static size_t small;
static pthread_barrier_t begin_small;

static void limit(pid_t pid, size_t mib)
{
    const struct rlimit l = {mib * MIB, RLIM_INFINITY};

    CHECK(prlimit(pid, argument[1][0] == 'a' ? RLIMIT_AS : RLIMIT_DATA, &l, NULL) == 0);
}

static void limit_by_other(void)
{
    IN_CHILD
    {
        limit(getppid(), LIMIT_MIB);
    }
}

static void *by(const char *how, size_t n)
{
    void *p = NULL;

    if (strcmp(how, "malloc") == 0) {
        return malloc(n);
    } else if (strcmp(how, "calloc") == 0) {
        return calloc(1, n);
    } else if (strcmp(how, "memalign") == 0) {
        return memalign(64, n);
    } else if (strcmp(how, "posix_memalign") == 0) {
        errno = posix_memalign(&p, 64, n);
        return p;
    } else if (strcmp(how, "new") == 0) {
        return operator_new(n, &nothrow);
    }
    CHECK(strcmp(how, "realloc") == 0);
    void *less = malloc(n / 2 + 1);
    p = less != NULL ? realloc(less, n) : NULL;
    free(p == NULL ? less : NULL);
    return p;
}

/* A chain of blocks, through their first bytes: each has room for a pointer. Counted with what
 * glibc keeps of each. */
static struct got take(const char *how, size_t n)
{
    struct got g = {0, NULL};

    for (void *p; (p = by(how, n)) != NULL; g.last = p) {
        size_t usable = malloc_usable_size(p);
        CHECK(usable >= n && usable >= sizeof p);
        memset(p, 1, n);
        memcpy(p, &g.last, sizeof p);
        g.bytes += usable + sizeof(size_t);
    }
    CHECK(errno == ENOMEM);
    return g;
}

static void give(void *p)
{
    for (void *next; p != NULL; p = next) {
        memcpy(&next, p, sizeof next);
        free(p);
    }
}

static void *take_small(void *got)
{
    pthread_barrier_wait(&begin_small);
    *(struct got *)got = take(argument[6], small);
    return NULL;
}

static void take_in_child(struct got *got)
{
    IN_CHILD
    {
        got->bytes = take(argument[6], small).bytes;
    }
    got->last = NULL;
}

static size_t take_all(char *block[], size_t len)
{
    size_t n = 0;

    while (n < BLOCKS_MOST && (block[n] = malloc(len)) != NULL) {
        stamp(block[n], len, n + 1);
        n++;
    }
    CHECK(n < BLOCKS_MOST);
    return n;
}

static void free_some(char *block[], size_t n, size_t len, unsigned long every)
{
    uint64_t state = 7;

    for (size_t i = 0; i < n; i++) {
        CHECK(is_stamped(block[i], len, i + 1));
        if (every != 0 ? i % every == 0 : next_random(&state) % 2 == 0) {
            free(block[i]);
            block[i] = NULL;
        }
    }
}

static void say(const char *word, size_t bytes)
{
    printf("%s %zu\n", word, bytes / MIB);
}

int main(int argc, char **argv)
{
    static char *block[BLOCKS_MOST], buffer[4096]; /* printf must not want memory */
    struct got *got = mmap(NULL, KIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_t t;

    CHECK(argc == 8 && got != MAP_FAILED);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    argument = argv;
    small = strtoul(argv[5], NULL, 10);
    size_t len = strtoul(argv[3], NULL, 10) * KIB;
    bool thread = argv[7][0] == 't' || argv[7][0] == 'b', mine = argv[7][0] != 't';
    CHECK(pthread_barrier_init(&begin_small, NULL, 1 + thread) == 0);
    CHECK(!thread || pthread_create(&t, NULL, take_small, &got[1]) == 0);
    free(malloc(len));
    if (argv[2][0] == 'o') {
        argv[2][1] == 'w' ? limit(0, LIMIT_MIB) : limit_by_other();
    }
    size_t n = take_all(block, len);
    say("large", n * len);
    free_some(block, n, len, strtoul(argv[4], NULL, 10));
    if (argv[7][0] == 'c') {
        take_in_child(got);
    } else {
        pthread_barrier_wait(&begin_small);
        got[0] = mine ? take(argv[6], small) : got[0];
    }
    CHECK(!thread || pthread_join(t, NULL) == 0);
    say("small", got[0].bytes + got[1].bytes);
    give(got[0].last);
    give(got[1].last);
    struct got then = take("malloc", len);
    say("then", then.bytes);
    for (size_t i = 0; i < n; i++) {
        CHECK(block[i] == NULL || is_stamped(block[i], len, i + 1));
        free(block[i]);
    }
    give(then.last);
    say("whole", take("malloc", len).bytes);
    return 0;
}
