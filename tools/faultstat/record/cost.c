#include "faultstat/record/cost.h"

#include "faultstat/record/user_clock.h"
#include "faultstat/steps.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FL_ROUNDS = 4 };
static const size_t area_len = (size_t)64 << 20; /* bytes: more than a core's caches */
static const size_t huge_len = (size_t)2 << 20;  /* bytes: alignment; no fact of the machine */

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double minor_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (double)usage.ru_minflt;
}

/* How an area is touched. A program's loops lie between the first two. */
enum touch {
    SET,   /* written in long runs, that the processor does not read first */
    SCALE, /* computed from another area, which stays: each line is read before it is written */
    READ,  /* one read a page */
    LOAD,  /* all of it read */
};

/* Times of one area's life, in ns of processor time. */
struct life {
    double first;      /* touching it all, fresh */
    double user;       /* of that in user mode: a median, while ticks are counted */
    double again;      /* touching it all once more */
    double again_user; /* likewise, of the second touch */
    double load;       /* reading it all */
    double unmap;
    double faults; /* of the first */
};

static double lesser(double a, double b)
{
    return b == 0 || (a != 0 && a < b) ? a : b;
}

/* What a vectorised loop takes at once: with less, a fault would cost a loop more, as fewer lines
 * are on their way when it begins anew. */
typedef uint64_t line __attribute__((vector_size(64)));

/* Returns ns.  source: of `area_len`, for SCALE. */
static double touch_all(char *base, const char *source, enum touch touch)
{
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    double start = cpu_ns();
    if (touch == SET) {
        memset(base, 1, area_len);
    }
    for (size_t i = 0; touch == SCALE && i < area_len / sizeof(line); i++) {
        ((line *)(void *)base)[i] = ((const line *)(const void *)source)[i] + 1;
    }
    for (size_t i = 0; touch == LOAD && i < area_len; i += sizeof(line)) {
        (void)*(volatile char *)(base + i);
    }
    for (size_t i = 0; touch == READ && i < area_len; i += page_len) {
        (void)*(volatile char *)(base + i);
    }
    return cpu_ns() - start;
}

/* An area of `area_len` that begins at a huge page. Free with give_area. */
static char *take_area(int advice)
{
    char *whole =
        mmap(NULL, area_len + huge_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) {
        return NULL;
    }
    size_t skip = (huge_len - (uintptr_t)whole % huge_len) % huge_len;
    if (skip > 0) {
        munmap(whole, skip);
    }
    munmap(whole + skip + area_len, huge_len - skip);
    (void)madvise(whole + skip, area_len, advice);
    return whole + skip;
}

static double give_area(char *base)
{
    double start = cpu_ns();
    munmap(base, area_len);
    return cpu_ns() - start;
}

/* User time of both touches of one life. */
struct ticked {
    double first;
    double again;
};

/* One life, timed. Ticks of the clock lengthen what they meet, so lives with them are for
 * `user`. */
static void time_once(struct life *best, char *base, const char *source, enum touch touch)
{
    double faults = minor_faults();
    best->first = lesser(touch_all(base, source, touch), best->first);
    best->faults = minor_faults() - faults;
    best->again = lesser(touch_all(base, source, touch), best->again);
    best->load = lesser(touch_all(base, source, LOAD), best->load);
}

static struct ticked tick_once(char *base, const char *source, enum touch touch)
{
    struct fl_user_clock clock;
    (void)fl_user_clock_open(&clock);
    (void)touch_all(base, source, touch);
    double user = fl_user_clock_ns(&clock);
    (void)touch_all(base, source, touch);
    struct ticked ticked = {user, fl_user_clock_ns(&clock) - user};
    fl_user_clock_close(&clock);
    return ticked;
}

/* The least of some lives: the host of a virtual machine may take its own faults in the first. */
static struct life measure_life(int advice, enum touch touch)
{
    struct life best = {0};
    char *source = take_area(advice);
    if (source == NULL) {
        return best;
    }
    memset(source, 1, touch == SCALE ? area_len : 1);
    double first[FL_ROUNDS] = {0};
    double again[FL_ROUNDS] = {0};
    for (size_t i = 0; i < FL_ROUNDS * 2; i++) {
        char *base = take_area(advice);
        if (base == NULL) {
            break;
        }
        if (i % 2 == 0) {
            time_once(&best, base, source, touch);
        } else {
            struct ticked ticked = tick_once(base, source, touch);
            first[i / 2] = ticked.first;
            again[i / 2] = ticked.again;
        }
        best.unmap = lesser(give_area(base), best.unmap);
    }
    best.user = fl_median(first, FL_ROUNDS);
    best.again_user = fl_median(again, FL_ROUNDS);
    (void)give_area(source);
    return best;
}

/* A child writes what it shares with us. Returns ns a page; 0: not measured. */
static double measure_copy(size_t page_len)
{
    double *cost = mmap(NULL, page_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *base = mmap(NULL, area_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double result = 0;
    if (cost != MAP_FAILED && base != MAP_FAILED) {
        (void)madvise(base, area_len, MADV_NOHUGEPAGE);
        memset(base, 1, area_len / 4);
        pid_t pid = fork();
        if (pid == 0) {
            double start = cpu_ns();
            for (size_t i = 0; i < area_len / 4; i += page_len) {
                ((volatile char *)base)[i] = 2;
            }
            *cost = (cpu_ns() - start) / ((double)area_len / 4 / (double)page_len);
            _exit(0);
        }
        while (pid > 0 && waitpid(pid, NULL, 0) < 0) {
        }
        result = *cost;
    }
    if (base != MAP_FAILED) {
        munmap(base, area_len);
    }
    if (cost != MAP_FAILED) {
        munmap(cost, page_len);
    }
    return result;
}

/* Pages that are in memory already, by a second mapping. Returns ns a fault. */
static double measure_shared(size_t page_len)
{
    int fd = memfd_create("cost", MFD_CLOEXEC);
    size_t len = area_len / 4;
    double result = 0;
    volatile char sum = 0;
    if (fd < 0 || ftruncate(fd, (off_t)len) != 0) {
        return 0;
    }
    for (int pass = 0; pass < 2; pass++) { /* the first one makes the pages */
        char *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED) {
            break;
        }
        double faults = minor_faults();
        double start = cpu_ns();
        for (size_t i = 0; i < len; i += page_len) {
            base[i] = (char)(base[i] + sum);
        }
        faults = minor_faults() - faults;
        result = faults > 0 ? (cpu_ns() - start) / faults : 0;
        munmap(base, len);
    }
    close(fd);
    return result;
}

static double at_least_0(double value)
{
    return value > 0 ? value : 0;
}

/* Reading fresh memory maps the page of zeros; what is read as zeros was asked for as zeros, so
 * that an allocator that gives out used memory has to clear it. */
static void measure_zero(struct fl_costs *costs, double pages)
{
    struct life zero = measure_life(MADV_NOHUGEPAGE, READ);
    if (zero.faults >= pages) {
        costs->ns[FL_KIND_ZERO] = zero.first / pages;
        costs->saved_ns[FL_KIND_ZERO] = zero.first / pages;
        costs->user_ns[FL_KIND_ZERO] = zero.user / pages;
    }
}

/* The user time of a first touch beyond that of a later one, in memory that faultless would give:
 * the middle of both ways of writing. */
static void set_user(struct fl_costs *costs, enum fl_kind kind, double set_ns, double scale_ns)
{
    costs->user_ns[kind] = (set_ns + scale_ns) / 2;
    costs->user_reach_ns[kind] = fabs(set_ns - scale_ns) / 2;
}

void fl_costs_measure(struct fl_costs *costs)
{
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    struct life base = measure_life(MADV_NOHUGEPAGE, SET);
    struct life huge = measure_life(MADV_HUGEPAGE, SET);
    struct life base_scale = measure_life(MADV_NOHUGEPAGE, SCALE);
    struct life huge_scale = measure_life(MADV_HUGEPAGE, SCALE);
    double pages = (double)area_len / (double)page_len;
    bool has_huge = huge.faults > 0 && huge.faults < pages / 8;
    double resident = has_huge ? huge.again : base.again;
    double set_user_ns = has_huge ? huge.again_user : base.again_user;
    double scale_user_ns = has_huge ? huge_scale.again_user : base_scale.again_user;
    memset(costs, 0, sizeof(*costs));
    costs->clear_ns = resident / pages;
    costs->pass_ns = (has_huge ? huge.again + huge.load : base.again + base.load) / pages;
    if (base.faults >= pages) {
        costs->ns[FL_KIND_ANON] = at_least_0(base.first + base.unmap - base.again) / pages;
        costs->saved_ns[FL_KIND_ANON] = at_least_0(base.first + base.unmap - resident) / pages;
        set_user(costs, FL_KIND_ANON, (base.user - set_user_ns) / pages,
                 (base_scale.user - scale_user_ns) / pages);
    }
    if (has_huge) {
        costs->ns[FL_KIND_HUGE] = at_least_0(huge.first + huge.unmap - huge.again) / huge.faults;
        costs->saved_ns[FL_KIND_HUGE] = costs->ns[FL_KIND_HUGE];
        set_user(costs, FL_KIND_HUGE, (huge.user - set_user_ns) / huge.faults,
                 (huge_scale.user - scale_user_ns) / huge.faults);
        costs->walk = at_least_0(1 - huge_scale.again / base_scale.again);
    }
    measure_zero(costs, pages);
    costs->ns[FL_KIND_COPY] = measure_copy(page_len);
    costs->ns[FL_KIND_SHARED] = costs->ns[FL_KIND_FILE] = measure_shared(page_len);
    costs->ns[FL_KIND_OTHER] = costs->ns[FL_KIND_ANON];
}

void fl_costs_measure_recording(struct fl_costs *costs)
{
    double pages = (double)area_len / (double)sysconf(_SC_PAGESIZE);
    struct life base = measure_life(MADV_NOHUGEPAGE, SET);
    if (base.faults >= pages) {
        costs->recording_ns =
            at_least_0((base.first + base.unmap - base.again) / pages - costs->ns[FL_KIND_ANON]);
    }
}
