/* Page cache needs the memory that is held free. In a cgroup of 128 MiB:
 *
 *   victim_pressure DIR FILES   32 MiB are free, others hold 56 MiB, then so many files of 128 MiB
 *                               are written in DIR, one after another.
 * Says "released" when free memory went back while they were, else "kept". */
#include "worker.h"

#include <sys/mman.h>

enum { FREE_MIB = 32, OTHER_MIB = 56 };

/* What is dirty cannot be dropped: it is written out before it is much. How much decides whether
 * the kernel finds that it looks in vain, so it varies. */
static void write_file(const char *dir, size_t len, size_t at_once)
{
    static char page[1 << 16];
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    for (size_t at = 0; at < len; at += sizeof page) {
        CHECK(write(fd, page, sizeof page) == (ssize_t)sizeof page);
        CHECK(at % at_once != 0 || fdatasync(fd) == 0);
    }
    close(fd);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    void *other =
        mmap(NULL, OTHER_MIB * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(other != MAP_FAILED);
    char *live = malloc(3 * MIB);
    char *block[FREE_MIB];
    for (size_t i = 0; i < FREE_MIB; i++) {
        block[i] = malloc(MIB);
        stamp(block[i], MIB, 3);
    }
    for (size_t i = 0; i < FREE_MIB; i++) {
        free(block[i]);
    }
    stamp(live, 3 * MIB, 1);
    stamp(other, OTHER_MIB * MIB, 2);
    size_t before = rss_mib(), now = before;
    CHECK(before >= FREE_MIB + OTHER_MIB);
    nap(300); /* a thread that watches may be in its first lines */
    for (int i = 0; i < atoi(argv[2]) && now + FREE_MIB - 4 > before; i++) {
        write_file(argv[1], 128 * MIB, (size_t)(i % 3 + 1) * 8 * MIB);
        nap(10);
        now = rss_mib();
    }
    CHECK(is_stamped(live, 3 * MIB, 1) && is_stamped(other, OTHER_MIB * MIB, 2));
    puts(now + FREE_MIB - 4 <= before ? "released" : "kept");
    return 0;
}
