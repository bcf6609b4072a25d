/* Page cache needs the memory that is held free. In a cgroup of 576 MiB:
 *
 *   victim_pressure DIR TIMES LIMIT   32 MiB are free, others hold 56 MiB; then the cgroup meets
 *                                     its limit so many times, 0: until free memory went back.
 * Says "released" when it did, else "kept". LIMIT is the file of a limit that may be set below what
 * is in use: the kernel refuses it when it has looked in vain. "": there is none. */
#include "worker.h"

#include <sys/mman.h>

enum { FREE_MIB = 32, OTHER_MIB = 56, CACHE_MIB = 576 };

/* As much page cache as the limit. It is a hole that is read: nothing waits for the disk. */
static void fill_cache(const char *dir)
{
    static char page[1 << 16];
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && ftruncate(fd, CACHE_MIB * MIB) == 0);
    for (size_t at = 0; at < CACHE_MIB * MIB; at += sizeof page) {
        CHECK(read(fd, page, sizeof page) == (ssize_t)sizeof page);
    }
    close(fd);
}

static void ask_for_too_little(const char *limit)
{
    static const char text[] = "16777216";
    int fd = open(limit, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK(write(fd, text, sizeof text - 1) < 0 && (errno == EBUSY || errno == EINTR));
    close(fd);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    void *other =
        mmap(NULL, OTHER_MIB * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(other != MAP_FAILED);
    char *live = malloc(3 * MIB);
    char *block[FREE_MIB];
    for (size_t i = 0; i < FREE_MIB; i++) {
        block[i] = written(MIB, 3);
    }
    FREE_ALL(block, FREE_MIB);
    stamp(live, 3 * MIB, 1);
    stamp(other, OTHER_MIB * MIB, 2);
    size_t before = rss_mib(), now = before;
    CHECK(before >= FREE_MIB + OTHER_MIB);
    for (int i = 0, times = atoi(argv[2]); (times == 0 || i < times) && now + FREE_MIB - 4 > before;
         i++) {
        fill_cache(argv[1]);
        if (argv[3][0] != '\0') {
            ask_for_too_little(argv[3]);
        }
        nap(1);
        now = rss_mib();
    }
    CHECK(is_stamped(live, 3 * MIB, 1) && is_stamped(other, OTHER_MIB * MIB, 2));
    puts(now + FREE_MIB - 4 <= before ? "released" : "kept");
    return 0;
}
