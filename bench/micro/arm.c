/* What a move of huge pages costs with what has to be opened and closed for it, and what an armed
 * window costs others.
 *
 *   arm [--rounds N] [--each N] [--noise 0|1]
 *
 * Batches of 1, 16 and 256 huge pages move there and back (UFFDIO_MOVE), in three ways that take
 * turns:
 *   around  userfaultfd, its API, register, move, unregister, close: nothing stays
 *   kept    the descriptor stays, the window is registered around each batch
 *   armed   the window stays registered (write-protect mode), each batch is one call
 * each with 0, 1000 and 5000 maps more in the process, and with another thread that maps, writes
 * and unmaps 64 KiB without pause (a batch only begins when that thread has just been seen at work
 * beside this one; it needs a second CPU). Then first touches and munmap in maps that are armed and
 * in such that are not. Contents are checked. The last line is `SUMMARY {json}` with medians in us:
 * WAY_PAGES_MAPS_quiet or _busy; base_plain, base_armed, huge_plain, huge_armed: a first touch;
 * unmap_plain, unmap_armed: munmap of 16 huge pages. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Build headers may be older than the call. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFDIO_MOVE
struct uffdio_move {
    __u64 dst, src, len, mode;
    __s64 move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

enum way { AROUND, KEPT, ARMED, WAYS };
enum { SIZES = 3, MAPS = 3, NOISES = 2, SAMPLES = 4096 };
enum { BASE_PAGES = 256, HUGE_PAGES = 16, NOISE_BYTES = 16 * FL_BASE_PAGE };

static const char *const way_name[WAYS] = {"around", "kept", "armed"};
static const size_t side_len = (size_t)256 * FL_HUGE_PAGE;
static const size_t pages[SIZES] = {1, 16, 256};
static const size_t maps[MAPS] = {0, 1000, 5000};
static long rounds = 8, each = 4, with_noise = 1;

struct samples {
    double us[SAMPLES];
    size_t n;
};

static struct samples moved[WAYS][SIZES][MAPS][NOISES];
static struct samples touched[2][2], unmapped[2]; /* [armed], touched by [base or huge page] too */

/* Each has two sides, of which one has the pages. kept_fd registers parts of the first, armed_fd
 * holds all of the other. */
static char *common_window, *armed_window;
static int kept_fd, armed_fd;

static void fail(const char *what)
{
    fprintf(stderr, "arm: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void note(struct samples *s, double ms)
{
    if (s->n < SAMPLES) {
        s->us[s->n++] = ms * 1e3;
    }
}

static double median(struct samples *s)
{
    fl_bench_sort(s->us, s->n);
    return s->n == 0 ? -1 : s->us[s->n / 2];
}

/* Aligned to huge pages; what is beyond stays mapped. */
static char *map(size_t len, int advice)
{
    char *raw = mmap(NULL, len + FL_HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        fail("mmap");
    }
    char *base = raw + (-(uintptr_t)raw & (FL_HUGE_PAGE - 1));
    if (base != raw && munmap(raw, (size_t)(base - raw)) != 0) {
        fail("munmap");
    }
    if (munmap(base + len, (size_t)(raw + FL_HUGE_PAGE - base)) != 0 ||
        madvise(base, len, advice) != 0) {
        fail("the end of a map");
    }
    return base;
}

static int open_door(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0) {
        fail("userfaultfd");
    }
    return fd;
}

static void arm(int fd, const char *base, size_t len)
{
    struct uffdio_register r = {.range = {(uintptr_t)base, len}, .mode = UFFDIO_REGISTER_MODE_WP};
    if (ioctl(fd, UFFDIO_REGISTER, &r) != 0) {
        fail("UFFDIO_REGISTER");
    }
}

static void disarm(int fd, const char *base, size_t len)
{
    struct uffdio_range r = {(uintptr_t)base, len};
    if (ioctl(fd, UFFDIO_UNREGISTER, &r) != 0) {
        fail("UFFDIO_UNREGISTER");
    }
}

static void move(int fd, const char *from, const char *to, size_t len)
{
    for (size_t done = 0; done < len;) {
        struct uffdio_move m = {
            .dst = (uintptr_t)to + done, .src = (uintptr_t)from + done, .len = len - done};
        if (ioctl(fd, UFFDIO_MOVE, &m) != 0 && errno != EAGAIN) {
            fail("UFFDIO_MOVE");
        }
        done += m.move > 0 ? (size_t)m.move : 0;
    }
}

/* One batch, as that way does it. */
static double batch(enum way way, const char *from, const char *to, size_t len)
{
    double start = fl_bench_ms();
    int fd = way == AROUND ? open_door() : way == KEPT ? kept_fd : armed_fd;
    if (way != ARMED) {
        arm(fd, to, len);
    }
    move(fd, from, to, len);
    if (way != ARMED) {
        disarm(fd, to, len);
    }
    if (way == AROUND) {
        close(fd);
    }
    return fl_bench_ms() - start;
}

static _Atomic bool noise_wanted, noise_ends;
static atomic_long noise_turns;

static void pin(unsigned nth)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(all), &all) != 0 || (unsigned)CPU_COUNT(&all) <= nth) {
        fprintf(stderr, "arm: --noise 1 needs two CPUs\n");
        exit(1);
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && nth-- == 0) {
            CPU_SET(cpu, &one);
        }
    }
    if (sched_setaffinity(0, sizeof(one), &one) != 0) {
        fail("sched_setaffinity");
    }
}

static void *make_noise(void *unused)
{
    (void)unused;
    pin(1);
    while (!atomic_load(&noise_ends)) {
        if (!atomic_load(&noise_wanted)) {
            fl_bench_sleep_ms(1);
            continue;
        }
        char *p =
            mmap(NULL, NOISE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            fail("mmap");
        }
        fl_bench_touch(p, NOISE_BYTES, FL_BASE_PAGE);
        munmap(p, NOISE_BYTES);
        atomic_fetch_add(&noise_turns, 1);
    }
    return NULL;
}

/* Until the other thread is seen at work while this one runs. */
static void await_noise(void)
{
    const double look_ms = 0.05;
    for (;;) {
        long seen = atomic_load(&noise_turns);
        double start = fl_bench_ms(), now = start;
        while (now - start < look_ms) {
            now = fl_bench_ms();
        }
        if (now - start < 2 * look_ms && atomic_load(&noise_turns) >= seen + 2) {
            return;
        }
    }
}

static void there_and_back(enum way way, size_t size, size_t m, bool noisy)
{
    char *side = way == ARMED ? armed_window : common_window;

    for (int back = 0; back < 2; back++) {
        if (noisy) {
            await_noise();
        }
        double ms = batch(way, side + (size_t)back * side_len, side + (size_t)!back * side_len,
                          pages[size] * FL_HUGE_PAGE);
        note(&moved[way][size][m][noisy], ms);
    }
}

/* Every way and size once; another one first each time, since the first finds the caches cold. */
static void move_all(size_t m, bool noisy)
{
    static size_t turn;

    atomic_store(&noise_wanted, noisy);
    for (size_t i = 0; i < (size_t)WAYS * SIZES; i++) {
        size_t one = (i + turn) % ((size_t)WAYS * SIZES);
        there_and_back((enum way)(one % WAYS), one / WAYS, m, noisy);
    }
    turn++;
    atomic_store(&noise_wanted, false);
}

/* `n` maps that do not merge; NULL: none. */
static char *clutter(size_t n)
{
    if (n == 0) {
        return NULL;
    }
    char *base = mmap(NULL, n * FL_BASE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        fail("mmap");
    }
    for (size_t i = 0; i < n; i += 2) {
        if (mprotect(base + i * FL_BASE_PAGE, FL_BASE_PAGE, PROT_READ) != 0) {
            fail("mprotect");
        }
    }
    return base;
}

/* In pieces, so that a piece that had to wait for the processor is one sample of many. */
static void touch(struct samples *s, char *base, size_t len, size_t piece, size_t stride)
{
    for (size_t done = 0; done < len; done += piece) {
        double start = fl_bench_ms();
        fl_bench_touch(base + done, piece, stride);
        note(s, (fl_bench_ms() - start) / (double)(piece / stride));
    }
}

static void touch_and_unmap(bool armed)
{
    const size_t base_len = (size_t)BASE_PAGES * FL_BASE_PAGE,
                 huge_len = (size_t)HUGE_PAGES * FL_HUGE_PAGE;
    char *base = map(base_len, MADV_NOHUGEPAGE), *huge = map(huge_len, MADV_HUGEPAGE);
    if (armed) {
        arm(armed_fd, base, base_len);
        arm(armed_fd, huge, huge_len);
    }
    touch(&touched[armed][0], base, base_len, NOISE_BYTES, FL_BASE_PAGE);
    touch(&touched[armed][1], huge, huge_len, FL_HUGE_PAGE, FL_HUGE_PAGE);
    double start = fl_bench_ms();
    munmap(huge, huge_len);
    note(&unmapped[armed], fl_bench_ms() - start);
    munmap(base, base_len);
}

static void measure(void)
{
    for (long r = 0; r < rounds; r++) {
        for (size_t m = 0; m < MAPS; m++) {
            char *more = clutter(maps[m]);
            for (long i = 0; i < each * (1 + (with_noise != 0)); i++) {
                move_all(m, with_noise != 0 && i % 2 == 1);
            }
            if (more != NULL) {
                munmap(more, maps[m] * FL_BASE_PAGE);
            }
        }
        for (long i = 0; i < 2 * each; i++) {
            touch_and_unmap(i % 2 == 1);
        }
    }
}

static void report(void)
{
    static const char *const noise_name[NOISES] = {"quiet", "busy"};
    static const char *const kind[2] = {"plain", "armed"};
    printf("SUMMARY {");
    for (int w = 0; w < WAYS; w++) {
        for (size_t s = 0; s < SIZES; s++) {
            for (size_t m = 0; m < MAPS; m++) {
                for (int n = 0; n <= (with_noise != 0); n++) {
                    printf("\"%s_%zu_%zu_%s\": %.2f, ", way_name[w], pages[s], maps[m],
                           noise_name[n], median(&moved[w][s][m][n]));
                }
            }
        }
    }
    for (int a = 0; a < 2; a++) {
        printf("\"base_%s\": %.3f, \"huge_%s\": %.2f, \"unmap_%s\": %.2f%s", kind[a],
               median(&touched[a][0]), kind[a], median(&touched[a][1]), kind[a],
               median(&unmapped[a]), a == 0 ? ", " : "}\n");
    }
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--rounds", &rounds}, {"--each", &each}, {"--noise", &with_noise}, {NULL, NULL}};
    pthread_t noise;
    fl_bench_options(argc, argv, option);
    common_window = map(2 * side_len, MADV_HUGEPAGE);
    armed_window = map(2 * side_len, MADV_HUGEPAGE);
    fl_bench_pattern(common_window, side_len);
    fl_bench_pattern(armed_window, side_len);
    kept_fd = open_door();
    armed_fd = open_door();
    arm(armed_fd, armed_window, 2 * side_len);
    if (with_noise != 0) {
        if (pthread_create(&noise, NULL, make_noise, NULL) != 0) {
            fail("pthread_create");
        }
        pin(0);
    }
    measure();
    atomic_store(&noise_ends, true);
    if (with_noise != 0) {
        pthread_join(noise, NULL);
    }
    fl_bench_check_pattern(common_window, side_len);
    fl_bench_check_pattern(armed_window, side_len);
    if (fl_bench_huge_bytes(common_window, side_len) != (long long)side_len ||
        fl_bench_huge_bytes(armed_window, side_len) != (long long)side_len) {
        fprintf(stderr, "arm: not all was in huge pages\n");
        return 1;
    }
    report();
    return 0;
}
