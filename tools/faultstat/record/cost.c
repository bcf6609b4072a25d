#include "faultstat/record/cost.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FL_ROUNDS = 3 };
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

/* Times of one area's life, in ns of processor time. */
struct life {
    double first; /* writing it all, fresh */
    double again; /* writing it all once more */
    double unmap;
    double faults; /* of the first */
};

static double lesser(double a, double b)
{
    return b == 0 || (a != 0 && a < b) ? a : b;
}

static double write_all(char *base)
{
    double start = cpu_ns();
    memset(base, 1, area_len);
    return cpu_ns() - start;
}

/* The least of some lives: the host of a virtual machine may take its own faults in the first. */
static struct life measure_life(int advice)
{
    struct life best = {0};
    for (int i = 0; i < FL_ROUNDS; i++) {
        char *whole = mmap(NULL, area_len + huge_len, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (whole == MAP_FAILED) {
            return best;
        }
        char *base = whole + (huge_len - (uintptr_t)whole % huge_len) % huge_len;
        (void)madvise(whole, area_len + huge_len, advice);
        double before = minor_faults();
        best.first = lesser(write_all(base), best.first);
        best.faults = minor_faults() - before;
        best.again = lesser(write_all(base), best.again);
        double start = cpu_ns();
        munmap(whole, area_len + huge_len);
        best.unmap = lesser(cpu_ns() - start, best.unmap);
    }
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

void fl_costs_measure(struct fl_costs *costs)
{
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    struct life base = measure_life(MADV_NOHUGEPAGE);
    struct life huge = measure_life(MADV_HUGEPAGE);
    double pages = (double)area_len / (double)page_len;
    bool has_huge = huge.faults > 0 && huge.faults < pages / 8;
    double resident = has_huge ? huge.again : base.again;
    memset(costs, 0, sizeof(*costs));
    if (base.faults >= pages) {
        costs->ns[FL_KIND_ANON] = at_least_0(base.first + base.unmap - base.again) / pages;
        costs->saved_ns[FL_KIND_ANON] = at_least_0(base.first + base.unmap - resident) / pages;
    }
    if (has_huge) {
        costs->ns[FL_KIND_HUGE] = at_least_0(huge.first + huge.unmap - huge.again) / huge.faults;
        costs->saved_ns[FL_KIND_HUGE] = costs->ns[FL_KIND_HUGE];
    }
    costs->ns[FL_KIND_COPY] = measure_copy(page_len);
    costs->ns[FL_KIND_SHARED] = costs->ns[FL_KIND_FILE] = measure_shared(page_len);
    costs->ns[FL_KIND_OTHER] = costs->ns[FL_KIND_ANON];
}

void fl_costs_measure_recording(struct fl_costs *costs)
{
    double pages = (double)area_len / (double)sysconf(_SC_PAGESIZE);
    struct life base = measure_life(MADV_NOHUGEPAGE);
    if (base.faults >= pages) {
        costs->recording_ns =
            at_least_0((base.first + base.unmap - base.again) / pages - costs->ns[FL_KIND_ANON]);
    }
}
