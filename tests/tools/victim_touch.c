/* Takes exactly as many minor faults as it is told: PAGES on the main thread and HELPER_PAGES on a
 * thread named fl-x, in each of STEPS steps with a mark at each boundary; with STEPS 0 once,
 * unmarked.
 *
 *   victim_touch PAGES HELPER_PAGES STEPS [close|fork|ring|alien]
 *
 * close: closes every descriptor after the first mark. fork: a child marks too, once, in each step.
 * ring: the helper's pages are touched by a thread with the name of an io_uring worker of fl-x's;
 * alien: with the name of a worker of the main thread's.
 * Prints `marks N`, N being how many were answered. */
#include "faultless/step.h"
#include "fresh.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static pthread_barrier_t barrier;
static size_t helper_pages;
static const char *mode = "";
static bool is_over; /* written between two barriers */

/* One fault a page. */
static void touch(size_t pages)
{
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    size_t len = pages * page_len;
    if (pages == 0) {
        return;
    }
    volatile char *base = fresh(len, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i++) {
        base[i * page_len] = 1;
    }
    munmap((void *)(uintptr_t)base, len);
}

static void *touch_at_each_step(void *name)
{
    pthread_setname_np(pthread_self(), name);
    while (true) {
        pthread_barrier_wait(&barrier);
        if (is_over) {
            return NULL;
        }
        touch(helper_pages);
        pthread_barrier_wait(&barrier);
    }
}

static void *help(void *arg)
{
    pthread_t worker;
    char name[16];
    bool is_ring = strcmp(mode, "ring") == 0;
    if (!is_ring && strcmp(mode, "alien") != 0) {
        return touch_at_each_step(arg);
    }
    pthread_setname_np(pthread_self(), arg);
    snprintf(name, sizeof(name), "iou-wrk-%d", (int)(is_ring ? gettid() : getpid()));
    if (pthread_create(&worker, NULL, touch_at_each_step, name) != 0) {
        _exit(3);
    }
    pthread_join(worker, NULL);
    return NULL;
}

static void mark_in_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(fl_step_mark() != 0);
    }
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    static char helper_name[] = "fl-x";
    pthread_t thread;
    if (argc < 4) {
        return 2;
    }
    size_t pages = strtoul(argv[1], NULL, 10);
    helper_pages = strtoul(argv[2], NULL, 10);
    int steps = atoi(argv[3]);
    mode = argc > 4 ? argv[4] : "";
    int marks = 0;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, help, helper_name) != 0) {
        return 3;
    }
    marks += steps > 0 && fl_step_mark() == 0;
    if (strcmp(mode, "close") == 0) {
        close_range(3, ~0U, 0);
    }
    for (int i = 0; i < (steps > 0 ? steps : 1); i++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        touch(pages);
        if (strcmp(mode, "fork") == 0) {
            mark_in_child();
        }
        marks += steps > 0 && fl_step_mark() == 0;
    }
    is_over = true;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    printf("marks %d\n", marks);
    return 0;
}
