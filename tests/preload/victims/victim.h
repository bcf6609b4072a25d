/* What the victims share. They know nothing of faultless: every word here would hold under
 * glibc. */
#ifndef FAULTLESS_TESTS_PRELOAD_VICTIM_H
#define FAULTLESS_TESTS_PRELOAD_VICTIM_H

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            dprintf(2, "%s:%d: %s does not hold (errno %d)\n", __FILE__, __LINE__, #cond, errno);  \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Marks a block: a word every 512 bytes, and the last byte. */
static inline void stamp(void *p, size_t n, uint64_t seed)
{
    for (size_t at = 0; at + sizeof seed <= n; at += 512) {
        uint64_t v = seed + at;
        memcpy((char *)p + at, &v, sizeof v);
    }
    ((unsigned char *)p)[n - 1] = (unsigned char)seed;
}

/* The first `n` bytes of a block that was stamped when it had `whole`. */
static inline int is_stamped_part(const void *p, size_t n, size_t whole, uint64_t seed)
{
    for (size_t at = 0; at + sizeof seed <= n; at += 512) {
        uint64_t v;
        memcpy(&v, (const char *)p + at, sizeof v);
        if (v != seed + at && at + sizeof v < whole) {
            return 0;
        }
    }
    return n < whole || ((const unsigned char *)p)[n - 1] == (unsigned char)seed;
}

static inline int is_stamped(const void *p, size_t n, uint64_t seed)
{
    return is_stamped_part(p, n, n, seed);
}

static inline int is_all(const void *p, size_t n, unsigned char value)
{
    const unsigned char *bytes = p;

    return bytes[0] == value && memcmp(bytes, bytes + 1, n - 1) == 0;
}

static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* What stands behind `key` in a file of /proc; "" when it is not there. Allocates nothing. */
#include <fcntl.h>
static inline const char *proc_text(char text[8192], const char *path, const char *key)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, 8191) : 0;

    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *p = strstr(text, key);
    return p != NULL ? p + strlen(key) : "";
}

/* The number there; 0 when there is none. */
static inline size_t proc_number(const char *path, const char *key)
{
    char text[8192];

    return strtoull(proc_text(text, path, key), NULL, 10);
}

static inline char proc_letter(const char *path, const char *key)
{
    char text[8192];

    return proc_text(text, path, key)[0];
}

/* KiB in memory. */
static inline size_t rss_kib(void)
{
    return proc_number("/proc/self/status", "VmRSS:");
}

/* So many KiB as /proc/self/smaps_rollup says behind `key`. */
static inline size_t rollup_kib(const char *key)
{
    return proc_number("/proc/self/smaps_rollup", key);
}

static inline size_t huge_kib(void)
{
    return rollup_kib("\nAnonHugePages:");
}

/* Page faults so far, of RUSAGE_SELF or RUSAGE_THREAD. */
static inline long faults_of(int who)
{
    struct rusage u;

    CHECK(getrusage((__rusage_who_t)who, &u) == 0);
    return u.ru_minflt;
}

static inline void *taken(size_t n)
{
    void *p = malloc(n);

    CHECK(p != NULL);
    return p;
}

/* A block of ones. */
static inline void *filled(size_t n)
{
    return memset(taken(n), 1, n);
}

static inline void use(size_t n)
{
    free(filled(n));
}

/* One that was stamped. */
static inline void *written(size_t n, uint64_t seed)
{
    void *p = taken(n);

    stamp(p, n, seed);
    return p;
}

static inline int maps_have(const char *word)
{
    char line[512];
    int found = 0;
    FILE *f = fopen("/proc/self/maps", "r");

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        found |= strstr(line, word) != NULL;
    }
    fclose(f);
    return found;
}

#define FREE_ALL(p, n)                                                                             \
    do {                                                                                           \
        for (size_t i_ = 0; i_ < (size_t)(n); i_++) {                                              \
            free((p)[i_]);                                                                         \
        }                                                                                          \
    } while (0)

/* `f` has the thread's number. */
static inline void start_threads(pthread_t t[], size_t n, void *(*f)(void *))
{
    for (size_t i = 0; i < n; i++) {
        CHECK(pthread_create(&t[i], NULL, f, (void *)i) == 0);
    }
}

static inline void join_threads(const pthread_t t[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CHECK(pthread_join(t[i], NULL) == 0);
    }
}

static inline void in_thread(void *(*f)(void *), void *arg)
{
    pthread_t t;

    CHECK(pthread_create(&t, NULL, f, arg) == 0 && pthread_join(t, NULL) == 0);
}

static inline void ends_well(pid_t child)
{
    int status;

    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* The block behind it runs in a child, which must end well. */
#define IN_CHILD                                                                                   \
    for (pid_t child_ = fork(), once_ = 1; once_ != 0;                                             \
         once_ = 0, child_ == 0 ? _exit(0) : ends_well(child_))                                    \
        if (child_ == 0)

/* Where the whole suite runs many times, what runs for a time, or often, is to be short. */
static inline int is_short(void)
{
    return getenv("VICTIM_SHORT") != NULL;
}
static inline long at_most(long much)
{
    return is_short() ? much / 10 : much;
}

/* The modes of a victim, each a function that MODE(name) defines and puts on the list. */
enum { MODES_MOST = 64 };
static struct {
    struct {
        const char *name;
        void (*run)(void);
    } mode[MODES_MOST];
    size_t n;
} victim_modes;

#define MODE(f)                                                                                    \
    static void f(void);                                                                           \
    __attribute__((constructor)) static void f##_joins(void)                                       \
    {                                                                                              \
        CHECK(victim_modes.n < MODES_MOST);                                                        \
        victim_modes.mode[victim_modes.n].name = #f;                                               \
        victim_modes.mode[victim_modes.n++].run = f;                                               \
    }                                                                                              \
    static void f(void)

/* One that is a call. */
#define MODE_IS(name, call)                                                                        \
    MODE(name)                                                                                     \
    {                                                                                              \
        call;                                                                                      \
    }

static inline int run_mode(const char *name)
{
    for (size_t i = 0; i < victim_modes.n; i++) {
        if (name != NULL && strcmp(victim_modes.mode[i].name, name) == 0) {
            victim_modes.mode[i].run();
            return 0;
        }
    }
    dprintf(2, "no mode %s\n", name != NULL ? name : "given");
    return 2;
}

/* A victim whose argument is its mode. */
#define MAIN()                                                                                     \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        (void)argc;                                                                                \
        return run_mode(argv[1]);                                                                  \
    }

#endif
