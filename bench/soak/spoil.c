/* --spoil KIND: what the soak exists to notice, done on purpose by the program and not by the
 * allocator. */
#include "mix.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, LEAK = 1 << 20, MORE_FAULTS = 64, MORE_MAPS = 4 };

static const char *const kinds[] = {"memory",  "faults",   "descriptors", "maps",
                                    "threads", "contents", "child",       "hang"};

bool mix_spoil_known(const char *kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_asked(const char *kind)
{
    return mix_options.spoil != NULL && strcmp(mix_options.spoil, kind) == 0;
}

static void *stay(void *arg)
{
    for (;;) {
        pause();
    }
    return arg;
}

/* Pages touched for the first time, more in each epoch, and given back. */
static void fault(int pages)
{
    size_t len = (size_t)pages * PAGE;
    unsigned char *base =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return;
    }
    long before = mix_thread_faults();
    for (size_t i = 0; i < len; i += PAGE) {
        *(volatile unsigned char *)(base + i) = 1;
    }
    atomic_fetch_add(&mix_epoch.steady_faults, mix_thread_faults() - before);
    munmap(base, len);
}

static void map(void)
{
    for (int i = 0; i < MORE_MAPS; i++) {
        unsigned char *base = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base != MAP_FAILED) {
            (void)mprotect(base, PAGE, PROT_NONE);
        }
    }
}

void mix_spoil(struct mix_block kept[static MIX_KEPT])
{
    if (is_asked("memory")) {
        unsigned char *lost = malloc(LEAK);
        if (lost != NULL) {
            memset(lost, 1, LEAK);
        }
    } else if (is_asked("faults")) {
        fault(MORE_FAULTS * (mix_epoch.number + 1));
    } else if (is_asked("descriptors")) {
        (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
    } else if (is_asked("maps")) {
        map();
    } else if (is_asked("threads")) {
        pthread_t thread;
        (void)pthread_create(&thread, NULL, stay, NULL);
    } else if (is_asked("contents") && mix_epoch.number == 3) {
        kept[1].base[kept[1].len / 2] ^= 1;
    } else if (is_asked("hang") && mix_epoch.number == 3) {
        pause();
    }
}

bool mix_spoil_child(void)
{
    return is_asked("child") && mix_epoch.number == 3;
}
