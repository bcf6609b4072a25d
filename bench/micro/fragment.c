/* Leaves the machine's free memory in pieces, until its standard input ends.
 *
 *   fragment [--mib N] [--piece-kib N]
 *
 * Takes N MiB (0: all that is available but 512) in base pages and gives every other piece of 64
 * KiB back, so that half of it is free and hardly a huge page is left without moving pages in use.
 * Pieces are such of physical memory; who may not know where a page lies (no CAP_SYS_ADMIN) has
 * pieces of its addresses instead. Prints `ready N` with the MiB taken. If memory runs out, the
 * kernel's choice falls on this program first. */
#include "common.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long mib = 0, piece_kib = 64;

static long available_mib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "MemAvailable: %ld", &kib) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib / 1024;
}

static void offer_myself(void)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "we");
    if (file != NULL) {
        fputs("1000", file);
        fclose(file);
    }
}

/* Give back the pages of every other piece. */
static void give_back(char *base, size_t pages)
{
    enum { AT_ONCE = 65536 };
    static uint64_t entry[AT_ONCE];
    const uint64_t frame_mask = (UINT64_C(1) << 55) - 1,
                   piece = (uint64_t)piece_kib * 1024 / FL_BASE_PAGE;
    uint64_t first = (uintptr_t)base / FL_BASE_PAGE;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t start = 0; /* of the run of pages to give back that ends at `i` */
    for (size_t i = 0; i < pages; i++) {
        size_t at = i % AT_ONCE;
        if (at == 0 &&
            pread(fd, entry, sizeof(entry), (off_t)((first + i) * sizeof(entry[0]))) <= 0) {
            memset(entry, 0, sizeof(entry));
        }
        uint64_t frame = entry[at] & frame_mask;
        bool is_kept = (frame != 0 ? frame : first + i) / piece % 2 != 0;
        if (is_kept || i + 1 == pages) {
            (void)madvise(base + start * FL_BASE_PAGE, (i - start) * FL_BASE_PAGE, MADV_DONTNEED);
            start = i + 1;
        }
    }
    close(fd);
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--mib", &mib}, {"--piece-kib", &piece_kib}, {NULL, NULL}};
    char unused;
    fl_bench_options(argc, argv, option);
    offer_myself();
    mib = mib > 0 ? mib : available_mib() - 512;
    size_t len = (size_t)(mib > 0 ? mib : 0) << 20;
    char *base =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || madvise(base, len, MADV_NOHUGEPAGE) != 0) {
        perror("fragment");
        return 1;
    }
    fl_bench_touch(base, len, FL_BASE_PAGE);
    give_back(base, len / FL_BASE_PAGE);
    printf("ready %ld\n", mib);
    fflush(stdout);
    while (read(STDIN_FILENO, &unused, 1) > 0) {
    }
    return 0;
}
