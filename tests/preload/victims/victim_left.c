/* Frees blocks without undoing what it did to their pages. glibc unmaps blocks of this size when
 * they are freed, so that nothing is left of it: the blocks that come after must be as good as
 * new. */
#include "trio.h"

#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { AGAIN = 4 };

/* Blocks of the same size and of others, wherever they may lie: writable, and a child sees what the
 * parent saw. */
static void child_sees(struct trio *t)
{
    check(&t->before);
    check(&t->it);
    check(&t->after);
}

static void all_is_new(struct trio *t)
{
    struct trio next[AGAIN];

    free(t->it.p);
    for (size_t i = 0; i < AGAIN; i++) {
        make_trio(&next[i], always_mapped / (i + 1));
    }
    for (size_t i = 0; i < AGAIN; i++) {
        in_child(child_sees, &next[i]);
        end_trio(&next[i]);
    }
    check(&t->before);
    check(&t->after);
}

static void leave(void (*do_it)(const struct trio *))
{
    for (int i = 0; i < 3; i++) {
        struct trio t;
        make_trio(&t, always_mapped);
        do_it(&t);
        all_is_new(&t);
        drop(&t.before);
        drop(&t.after);
    }
}

static void protect(const struct trio *t)
{
    CHECK(mprotect(t->part, t->part_len, PROT_READ) == 0);
}
MODE_IS(read_only, leave(protect))

static void close_off(const struct trio *t)
{
    CHECK(mprotect(t->part, t->part_len, PROT_NONE) == 0);
}
MODE_IS(inaccessible, leave(close_off))

static void make_hole(const struct trio *t)
{
    CHECK(munmap(t->part, t->part_len) == 0);
}
MODE_IS(hole, leave(make_hole))

static void withhold(const struct trio *t)
{
    CHECK(madvise(t->part, t->part_len, MADV_DONTFORK) == 0);
}
MODE_IS(dontfork, leave(withhold))

static void wipe(const struct trio *t)
{
    CHECK(madvise(t->part, t->part_len, MADV_WIPEONFORK) == 0);
}
MODE_IS(wipeonfork, leave(wipe))

/* The same by number, as runtimes call the kernel that do without libc's functions. */
static void withhold_by_number(const struct trio *t)
{
    CHECK(syscall(SYS_madvise, t->part, t->part_len, MADV_DONTFORK) == 0);
}
static void protect_by_number(const struct trio *t)
{
    CHECK(syscall(SYS_mprotect, t->part, t->part_len, PROT_NONE) == 0);
}
static void hole_by_number(const struct trio *t)
{
    CHECK(syscall(SYS_munmap, t->part, t->part_len) == 0);
}
MODE(by_number)
{
    leave(withhold_by_number);
    leave(protect_by_number);
    leave(hole_by_number);
    errno = 0;
    CHECK(syscall(SYS_munmap, 1, 1) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_mmap, NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == -1);
}

/* The child of such a process frees its blocks too, holes and all. */
static void frees_and_goes_on(struct trio *t)
{
    all_is_new(t);
}
MODE(dontfork_in_child)
{
    struct trio t;
    make_trio(&t, always_mapped);
    withhold(&t);
    in_child(frees_and_goes_on, &t);
    CHECK(madvise(t.part, t.part_len, MADV_DOFORK) == 0);
    end_trio(&t);
}

/* A file over a part of the block: what is allocated later is not written to it. */
static int file;
static void map_file(const struct trio *t)
{
    CHECK(mmap(t->part, t->part_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
          t->part);
    memset(t->part, 0x5a, t->part_len);
}
MODE(mapped_file)
{
    char byte;
    file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    CHECK(file >= 0 && ftruncate(file, (off_t)always_mapped) == 0);
    leave(map_file);
    for (off_t at = 0; at < (off_t)(always_mapped / 4); at += 4096) {
        CHECK(pread(file, &byte, 1, at) == 1 && byte == 0x5a);
    }
}

/* Memory that was locked goes back when it is free, and what comes after it is not locked. */
MODE(locked)
{
    struct trio t;
    make_trio(&t, always_mapped);
    CHECK(mlock(t.part, lockable(&t)) == 0);
    drop(&t.it);
    malloc_trim(0);
    CHECK(rss_kib() * KIB < 3 * always_mapped - 2 * MIB);
    drop(&t.before);
    drop(&t.after);
    make_trio(&t, always_mapped);
    CHECK(proc_number("/proc/self/status", "VmLck:") == 0);
    end_trio(&t);
}

/* An ordinary user may lock little: what was freed must not count. */
static void lock(const struct trio *t)
{
    CHECK(mlock(t->part, lockable(t)) == 0);
}
MODE_IS(locked_again, leave(lock))

/* A userfaultfd(2) of the program's own, which serves no fault: what it still has hangs. */
static int watcher(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);

    CHECK(fd < 0 || ioctl(fd, UFFDIO_API, &api) == 0);
    return fd;
}

static void watch(const struct trio *t, bool by_number)
{
    struct uffdio_register r = {.range = {(uintptr_t)t->part, t->part_len},
                                .mode = UFFDIO_REGISTER_MODE_MISSING};
    int fd = watcher();

    if (fd >= 0) { /* else this user may have none */
        CHECK((by_number ? (int)syscall(SYS_ioctl, fd, UFFDIO_REGISTER, &r)
                         : ioctl(fd, UFFDIO_REGISTER, &r)) == 0);
    }
}
static void watch_by_ioctl(const struct trio *t)
{
    watch(t, false);
}
static void watch_by_number(const struct trio *t)
{
    watch(t, true);
}
MODE(watched)
{
    leave(watch_by_ioctl);
    leave(watch_by_number);
}

MAIN()
