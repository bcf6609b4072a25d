/* Touches PAGES base pages and says what the kernel counts of it, in KiB and faults, as a line
 * SUMMARY {json}: getrusage(2) and its own smaps_rollup while a mark is taken.
 *
 *   victim_usage PAGES */
#include "faultless/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

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

int main(int argc, char **argv)
{
    struct rusage usage;
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    size_t len = (size_t)(argc > 1 ? atol(argv[1]) : 0) * page_len;
    char *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return 3;
    }
    (void)madvise(base, len, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < len; at += page_len) {
        ((volatile char *)base)[at] = 1;
    }
    long pss = rollup("Pss:");
    long anonymous = rollup("Anonymous:");
    (void)fl_step_mark();
    (void)fl_step_mark();
    getrusage(RUSAGE_SELF, &usage);
    printf("SUMMARY {\"minflt\": %ld, \"maxrss\": %ld, \"pss\": %ld, \"anonymous\": %ld}\n",
           usage.ru_minflt, usage.ru_maxrss, pss, anonymous);
    return 0;
}
