/* Does to its own blocks, and to descriptors, what a program may do to what malloc gave it. */
#include "trio.h"

#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <signal.h>
#include <spawn.h>
#include <time.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static void (*scenario)(struct trio *);

static void each_size(void)
{
    static const size_t sizes[] = {200 * KIB, 3 * MIB, always_mapped};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct trio t;
        make_trio(&t, sizes[i]);
        scenario(&t);
        end_trio(&t);
    }
}

static void quietly(void (*f)(struct trio *))
{
    scenario = f;
    for (int i = 0; i < (is_short() ? 1 : 3); i++) {
        each_size();
    }
}

static void both_ways(void (*f)(struct trio *))
{
    quietly(f);
    while_others_allocate(each_size);
}

/* madvise */
static void discards(struct trio *t)
{
    CHECK(madvise(t->part, t->part_len, MADV_DONTNEED) == 0);
    check_rest(t);
    check_zero(t->part, t->part_len);
    renew(&t->it, 23);
    CHECK(madvise(t->part, t->part_len, MADV_FREE) == 0);
    check_rest(t);
    check_part(t, 1);
}
MODE_IS(dontneed_and_free, both_ways(discards))

static void advises(struct trio *t)
{
    static const int advice[] = {MADV_HUGEPAGE,      MADV_NOHUGEPAGE,     MADV_COLLAPSE,
                                 MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_COLD,
                                 MADV_PAGEOUT,       MADV_WILLNEED,       MADV_SEQUENTIAL,
                                 MADV_RANDOM,        MADV_DONTDUMP,       MADV_MERGEABLE};
    for (size_t i = 0; i < sizeof advice / sizeof advice[0]; i++) {
        (void)madvise(t->part, t->part_len, advice[i]); /* an old kernel may refuse some */
        check(&t->it);
        renew(&t->it, 100 + i);
    }
    (void)madvise(t->part, t->part_len, MADV_UNMERGEABLE);
    check(&t->it);
}
MODE_IS(advice, both_ways(advises))

static void child_without_part(struct trio *t)
{
    check_rest(t);
    check(&t->before);
    drop(&t->after);
    struct block b = stamped(t->it.n, 5);
    drop(&b);
}
static void withholds(struct trio *t)
{
    CHECK(madvise(t->part, t->part_len, MADV_DONTFORK) == 0);
    in_child(child_without_part, t);
    CHECK(madvise(t->part, t->part_len, MADV_DOFORK) == 0);
    check(&t->it);
}
MODE_IS(dontfork_and_dofork, both_ways(withholds))

static void child_with_zeros(struct trio *t)
{
    check_rest(t);
    check_zero(t->part, t->part_len);
    renew(&t->it, 6);
    drop(&t->it);
}
static void child_with_all(struct trio *t)
{
    drop(&t->it);
    drop(&t->before);
}
static void wipes(struct trio *t)
{
    CHECK(madvise(t->part, t->part_len, MADV_WIPEONFORK) == 0);
    in_child(child_with_zeros, t);
    CHECK(madvise(t->part, t->part_len, MADV_KEEPONFORK) == 0);
    check(&t->it);
    in_child(child_with_all, t);
    check(&t->it);
}
MODE_IS(wipeonfork_and_keeponfork, both_ways(wipes))

/* mprotect */
static void protects(struct trio *t)
{
    CHECK(mprotect(t->part, t->part_len, PROT_READ) == 0);
    check(&t->it);
    in_child(child_with_all, t);
    struct block b = stamped(t->it.n, 7);
    drop(&b);
    CHECK(mprotect(t->part, t->part_len, PROT_NONE) == 0);
    check_rest(t);
    malloc_trim(0);
    CHECK(mprotect(t->part, t->part_len, PROT_READ | PROT_WRITE) == 0);
    check(&t->it);
}
MODE_IS(mprotect_and_back, both_ways(protects))

/* mremap, munmap, mmap: between going and coming back there is a hole that another thread's map
 * might fall into */
static void remaps(struct trio *t)
{
    CHECK(mremap(t->part, t->part_len, t->part_len, 0) == t->part);
    CHECK(mremap(t->part, t->part_len, t->part_len, MREMAP_MAYMOVE) == t->part);
    check(&t->it);
    char *away = mmap(NULL, t->part_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(away != MAP_FAILED);
    CHECK(mremap(t->part, t->part_len, t->part_len, MREMAP_MAYMOVE | MREMAP_FIXED, away) == away);
    check_rest(t);
    CHECK(mremap(away, t->part_len, t->part_len, MREMAP_MAYMOVE | MREMAP_FIXED, t->part) ==
          t->part);
    check(&t->it);
}
MODE_IS(mremap_away_and_back, quietly(remaps))

static void empties(struct trio *t)
{
    char *away = mremap(t->part, t->part_len, t->part_len, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (away != MAP_FAILED) { /* Linux 5.7 */
        check_rest(t);
        check_zero(t->part, t->part_len);
        memcpy(t->part, away, t->part_len);
        munmap(away, t->part_len);
        check(&t->it);
    }
}
MODE_IS(mremap_dontunmap, both_ways(empties))

static void unmaps(struct trio *t)
{
    CHECK(munmap(t->part, t->part_len) == 0);
    check_rest(t);
    CHECK(mmap(t->part, t->part_len, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == t->part);
    check_rest(t);
    check_zero(t->part, t->part_len);
}
MODE_IS(munmap_and_mmap, quietly(unmaps))

static void maps_over(struct trio *t)
{
    CHECK(mmap(t->part, t->part_len, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == t->part);
    check_rest(t);
    check_zero(t->part, t->part_len);
}
MODE_IS(mmap_over, both_ways(maps_over))

/* mlock, as much as an ordinary user may */
static void locks(struct trio *t)
{
    size_t n = lockable(t);
    CHECK(mlock(t->part, n) == 0);
    check(&t->it);
    struct block b = stamped(t->it.n, 8);
    in_child(child_with_all, t);
    CHECK(munlock(t->part, n) == 0);
    drop(&b);
    check(&t->it);
    CHECK(mlock2(t->part, n, MLOCK_ONFAULT) == 0);
    check(&t->it);
    CHECK(munlock(t->part, n) == 0);
}
MODE_IS(mlock_and_munlock, both_ways(locks))

static void locks_all(struct trio *t)
{
    if (mlockall(MCL_CURRENT) != 0) {
        /* More than this user may: addresses that the allocator only reserves count as well. */
        CHECK(errno == ENOMEM && geteuid() != 0);
        return;
    }
    check(&t->it);
    struct block b = stamped(t->it.n, 8);
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    struct block c = stamped(t->it.n + 100 * KIB, 9);
    drop(&b);
    in_child(child_with_all, t);
    CHECK(munlockall() == 0);
    drop(&c);
    check(&t->it);
}
MODE_IS(mlockall_and_back, both_ways(locks_all))

/* Descriptors. What the allocator had open, it may have lost. */
static void warm(void)
{
    struct trio t;
    make_trio(&t, 30 * MIB);
    end_trio(&t);
}

static void grow_and_fork(struct trio *t)
{
    make_trio(t, 9 * MIB);
    in_child(end_trio, t);
    end_trio(t);
}

static void closes(void)
{
    struct trio t;
    for (int i = 0; i < (is_short() ? 2 : 5); i++) {
        CHECK(close_range(3, 65535, 0) == 0);
        grow_and_fork(&t);
        for (int fd = 3; fd < 1024; fd++) {
            close(fd);
        }
        grow_and_fork(&t);
        malloc_trim(0);
    }
}
MODE(close_all)
{
    closes();
    warm();
    closes();
    while_others_allocate(closes);
}

enum { LOW_FIRST = 3, LOW_END = 200, FILE_FD = 300, PIPE_READ, PIPE_WRITE, EVENT_FD };

static const int kinds[] = {FILE_FD, PIPE_READ, PIPE_WRITE, EVENT_FD};

static int kind_of(int fd)
{
    return kinds[(size_t)fd % (sizeof kinds / sizeof kinds[0])];
}

static void put_at(int fd, int at)
{
    CHECK(fd >= 0 && dup2(fd, at) == at);
    close(fd);
}

/* Every low number is the program's own: nothing may be read from it, written to it or closed. */
MODE(dup2_over)
{
    static const char bytes[100];
    struct stat want, is;
    uint64_t count;
    int ends[2], queued;
    warm();
    CHECK(pipe(ends) == 0);
    put_at(ends[0], PIPE_READ);
    put_at(ends[1], PIPE_WRITE);
    put_at(open("/tmp", O_TMPFILE | O_RDWR, 0600), FILE_FD);
    put_at(eventfd(7, EFD_NONBLOCK), EVENT_FD);
    CHECK(write(PIPE_WRITE, bytes, sizeof bytes) == sizeof bytes);
    for (int fd = LOW_FIRST; fd < LOW_END; fd++) {
        CHECK(dup2(kind_of(fd), fd) == fd);
    }
    warm();
    while_others_allocate(warm);
    malloc_trim(0);
    for (int fd = LOW_FIRST; fd < LOW_END; fd++) {
        CHECK(fstat(kind_of(fd), &want) == 0 && fstat(fd, &is) == 0);
        CHECK(want.st_ino == is.st_ino && want.st_dev == is.st_dev);
    }
    CHECK(fstat(FILE_FD, &is) == 0 && is.st_size == 0);
    CHECK(ioctl(PIPE_READ, FIONREAD, &queued) == 0 && queued == sizeof bytes);
    CHECK(read(EVENT_FD, &count, sizeof count) == sizeof count && count == 7);
}

MODE(no_descriptors)
{
    struct rlimit usual, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &usual) == 0);
    none = (struct rlimit){3, usual.rlim_max};
    close_range(3, ~0u, 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    warm();
    while_others_allocate(warm);
    CHECK(setrlimit(RLIMIT_NOFILE, &usual) == 0);
}

MODE(count_fds)
{
    int n = 0;
    free(malloc(MIB));
    for (int fd = 3; fd < 1024; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    printf("open %d\n", n);
}

/* What exec hands on is the program's alone. */
extern char **environ;
MODE(exec_fds)
{
    static char self[] = "/proc/self/exe", mode[] = "count_fds";
    char *const args[] = {self, mode, NULL};
    pid_t pid;
    warm();
    CHECK(posix_spawn(&pid, self, NULL, NULL, args, environ) == 0);
    ends_well(pid);
    execv(self, args);
}

/* What the program closes is closed: no other process holds it open. */
MODE(end_of_file)
{
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    warm();
    CHECK(close(ends[1]) == 0);
    CHECK(read(ends[0], &byte, 1) == 0);
    CHECK(pipe(ends) == 0);
    while_others_allocate(warm);
    CHECK(close(ends[0]) == 0);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    CHECK(write(ends[1], "", 1) == -1 && errno == EPIPE);
}

static long cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A descriptor that is gone or another's must not keep a thread of the allocator's awake. */
MODE(closed_and_idle)
{
    const struct timespec a_while = {0, 700000000};
    warm();
    close_range(3, 65535, 0);
    warm();
    nanosleep(&a_while, NULL);
    long before = cpu_ms();
    nanosleep(&a_while, NULL);
    CHECK(cpu_ms() - before < 300);
}

MAIN()
