/* Takes its faults in functions whose names and counts are known: f touches 1000 pages, g 500, h
 * 2 x PAGES in a thread. With a step mark after each of STEPS rounds; 0: one round, no marks.
 *
 *   victim_sites [STEPS [PAGES [huge|fork|zero|uffd]]]
 *
 * huge: k writes 16 MiB that huge pages may back, too. fork: a child writes 300 of its parent's
 * pages, in c. zero: z reads 400 pages, each before it writes it. uffd: u writes 400 pages that a
 * userfaultfd handler gives; 4 where there is none. */
#include "faultless/step.h"
#include "fresh.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    FL_F_PAGES = 1000,
    FL_G_PAGES = 500,
    FL_C_PAGES = 300,
    FL_Z_PAGES = 400,
    FL_U_PAGES = 400,
    FL_K_BYTES = 16 << 20,
    FL_HUGE = 2 << 20
};

static size_t page_len;
static size_t thread_pages;

static volatile char *base_pages(size_t pages)
{
    return fresh(pages * page_len, MADV_NOHUGEPAGE);
}

/* A function of that name, which writes to so many pages. */
#define TOUCHES(name, pages)                                                                       \
    void name(volatile char *base);                                                                \
    __attribute__((noinline)) void name(volatile char *base)                                       \
    {                                                                                              \
        for (size_t i = 0; i < (pages); i++) {                                                     \
            base[i * page_len] = 1;                                                                \
        }                                                                                          \
    }
TOUCHES(f, FL_F_PAGES)
TOUCHES(g, FL_G_PAGES)
TOUCHES(h, 2 * thread_pages)
TOUCHES(k, FL_K_BYTES / page_len)
TOUCHES(c, FL_C_PAGES)
TOUCHES(u, FL_U_PAGES)

static void touch_huge(void)
{
    volatile char *base = fresh(FL_K_BYTES + FL_HUGE, MADV_HUGEPAGE);
    k(base + (FL_HUGE - (uintptr_t)base % FL_HUGE) % FL_HUGE);
}

void z(volatile char *base);

__attribute__((noinline)) void z(volatile char *base)
{
    for (size_t i = 0; i < FL_Z_PAGES; i++) {
        base[i * page_len] = (char)(base[i * page_len] + 1);
    }
}

static void copy_in_child(void)
{
    volatile char *base = base_pages(FL_F_PAGES);
    f(base);
    pid_t pid = fork();
    if (pid == 0) {
        c(base);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

/* Gives a zeroed page for each fault that the descriptor tells of. */
static void *serve(void *arg)
{
    struct uffd_msg message;
    int fd = *(int *)arg;
    while (read(fd, &message, sizeof(message)) == sizeof(message)) {
        uint64_t at = message.arg.pagefault.address / page_len * page_len;
        struct uffdio_zeropage zero = {.range = {at, page_len}};
        (void)ioctl(fd, UFFDIO_ZEROPAGE, &zero);
    }
    return arg;
}

static void touch_served(void)
{
    static int fd;
    pthread_t thread;
    volatile char *base = base_pages(FL_U_PAGES);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uintptr_t)base, FL_U_PAGES * page_len},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &range) != 0 ||
        pthread_create(&thread, NULL, serve, &fd) != 0) {
        _exit(4);
    }
    pthread_detach(thread);
    u(base);
}

static void *run_thread(void *arg)
{
    h(base_pages(2 * thread_pages));
    return arg;
}

static void round_of_faults(void)
{
    volatile char *base = base_pages(FL_F_PAGES);
    f(base);
    munmap((void *)(uintptr_t)base, FL_F_PAGES * page_len);
    base = base_pages(FL_G_PAGES);
    g(base);
    munmap((void *)(uintptr_t)base, FL_G_PAGES * page_len);
    if (thread_pages != 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, run_thread, NULL);
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv)
{
    long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    page_len = (size_t)sysconf(_SC_PAGESIZE);
    thread_pages = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (argc > 3 && strcmp(argv[3], "huge") == 0) {
        touch_huge();
    } else if (argc > 3 && strcmp(argv[3], "zero") == 0) {
        z(base_pages(FL_Z_PAGES));
    } else if (argc > 3 && strcmp(argv[3], "uffd") == 0) {
        touch_served();
    } else if (argc > 3) {
        copy_in_child();
    }
    if (steps > 0) {
        fl_step_mark();
    }
    for (long i = 0; i < steps || i == 0; i++) {
        round_of_faults();
        if (steps > 0) {
            fl_step_mark();
        }
    }
    return 0;
}
