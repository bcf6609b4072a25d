/* A program that ends in one of many ways, with handlers that write and print.
 *
 *   victim_host_end WAY COMPANION REQUESTS DELAY_US
 *
 * WAY: how main ends, see `ways`. COMPANION: the other thread: none, small (makes no large
 * request), large (makes all of them; main makes none). REQUESTS: none, few (200 KiB), once (32
 * MiB), busy (many of 20 MiB and more), quiet (32 MiB, then 60 ms without any). DELAY_US: before
 * each thread's end. */
#include "victim.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static const char *way, *companion, *requests;
static useconds_t delay;
static atomic_bool main_is_over;
static pthread_key_t key;

static void say(const char *text)
{
    CHECK(write(1, text, strlen(text)) == (ssize_t)strlen(text));
}

static void make_requests(void)
{
    if (strcmp(requests, "few") == 0) {
        use(200 * KIB);
    } else if (strcmp(requests, "once") == 0 || strcmp(requests, "quiet") == 0) {
        use(32 * MIB);
    } else if (strcmp(requests, "busy") == 0) {
        for (size_t i = 0; i < 6; i++) {
            use((20 + 7 * i) * MIB);
        }
    }
    if (strcmp(requests, "quiet") == 0) {
        usleep(60000);
    }
}

static void at_exit_writes(void)
{
    say("atexit writes\n");
}

static void at_exit_prints(void)
{
    printf("atexit prints\n");
    make_requests();
}

static void on_exit_prints(int status, void *arg)
{
    printf("on_exit %s %d\n", (const char *)arg, status);
}

static void quick_exit_writes(void)
{
    say("at_quick_exit writes\n");
}

__attribute__((destructor)) static void destructor_prints(void)
{
    printf("destructor prints\n");
}

/* Of thread-specific data: the thread that has it ends. */
static void key_is_destroyed(void *value)
{
    printf("%s's data is destroyed\n", (const char *)value);
    if (strcmp(value, "main") == 0) {
        main_is_over = 1;
    }
}

static int is(const char *what, const char *name)
{
    return strcmp(what, name) == 0;
}

static void *run_companion(void *arg)
{
    CHECK(pthread_setspecific(key, "companion") == 0);
    if (is(companion, "large")) {
        make_requests();
    }
    if (arg != NULL) {
        printf("companion prints, main waits\n");
        return NULL;
    }
    if (is(way, "pthread_exit") || is(way, "other_exits")) {
        while (!main_is_over) {
            sched_yield();
        }
        printf("companion prints\n");
        if (is(companion, "large")) {
            make_requests();
        }
    }
    usleep(delay);
    if (is(way, "other_exits")) {
        exit(6);
    }
    return NULL;
}

static int end_main(void)
{
    usleep(delay / 2);
    if (is(way, "exit")) {
        exit(3);
    } else if (is(way, "_exit")) {
        fflush(stdout);
        _exit(4);
    } else if (is(way, "quick_exit")) {
        fflush(stdout);
        quick_exit(5);
    } else if (is(way, "SYS_exit")) {
        fflush(stdout);
        syscall(SYS_exit, 7);
    } else if (!is(way, "return")) {
        pthread_exit(
            NULL); /* pthread_exit: the companion ends later; pthread_exit_alone; other_exits */
    }
    return 2;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    static char word[] = "word";

    CHECK(argc == 5);
    way = argv[1];
    companion = argv[2];
    requests = argv[3];
    delay = (useconds_t)atoi(argv[4]);
    CHECK(atexit(at_exit_writes) == 0 && on_exit(on_exit_prints, word) == 0);
    CHECK(atexit(at_exit_prints) == 0 && at_quick_exit(quick_exit_writes) == 0);
    CHECK(pthread_key_create(&key, key_is_destroyed) == 0);
    CHECK(pthread_setspecific(key, "main") == 0);
    printf("main prints\n");
    int lives_longer = is(way, "pthread_exit") || is(way, "other_exits");
    if (!is(companion, "none")) {
        CHECK(pthread_create(&thread, NULL, run_companion, lives_longer ? NULL : word) == 0);
        if (!lives_longer) {
            pthread_join(thread, NULL);
        }
    }
    if (!is(companion, "large")) {
        make_requests();
    }
    return end_main();
}
