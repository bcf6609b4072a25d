/* Touches PAGES base pages, HUGE MiB that huge pages may back, and each page of FILE, which is not
 * in memory where the file system lets it go; and says what the kernel counts of it, in KiB and
 * faults, as a line SUMMARY {json}: getrusage(2) and its own smaps_rollup while a mark is taken.
 *
 *   victim_usage PAGES [HUGE [FILE]] */
#include "faultless/step.h"
#include "fresh.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { FL_MIB = 1 << 20 };

static size_t page_len;

/* The number after `key` in /proc/self/smaps_rollup. */
static long rollup(const char *key)
{
    char line[256];
    long number = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            number = atol(line + strlen(key));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return number;
}

static void touch(volatile char *base, size_t len)
{
    for (size_t at = 0; at < len; at += page_len) {
        base[at] = 1;
    }
}

/* One page a fault: the kernel reads none ahead. */
static void read_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || fdatasync(fd) != 0 ||
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) {
        _exit(3);
    }
    size_t len = (size_t)status.st_size;
    const volatile char *base = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        _exit(3);
    }
    (void)madvise((void *)(uintptr_t)base, len, MADV_RANDOM);
    for (size_t at = 0; at < len; at += page_len) {
        (void)base[at];
    }
}

int main(int argc, char **argv)
{
    struct rusage usage;
    page_len = (size_t)sysconf(_SC_PAGESIZE);
    size_t len = (size_t)(argc > 1 ? atol(argv[1]) : 0) * page_len;
    size_t huge = (size_t)(argc > 2 ? atol(argv[2]) : 0) * FL_MIB;
    touch(fresh(len, MADV_NOHUGEPAGE), len);
    if (huge > 0) {
        touch(fresh(huge, MADV_HUGEPAGE), huge);
    }
    if (argc > 3) {
        read_file(argv[3]);
    }
    long pss = rollup("Pss:");
    long anonymous = rollup("Anonymous:");
    long in_huge = rollup("AnonHugePages:");
    (void)fl_step_mark();
    (void)fl_step_mark();
    getrusage(RUSAGE_SELF, &usage);
    printf("SUMMARY {\"minflt\": %ld, \"majflt\": %ld, \"maxrss\": %ld, \"pss\": %ld, "
           "\"anonymous\": %ld, \"huge\": %ld}\n",
           usage.ru_minflt, usage.ru_majflt, usage.ru_maxrss, pss, anonymous, in_huge);
    return 0;
}
