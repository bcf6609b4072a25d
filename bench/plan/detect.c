/* How soon and how rightly the steps of recorded programs are found, and what an event costs.
 *
 *     detect [FOREIGN [SEED]] STREAM...
 *         FOREIGN  so many of 1000 events are made up and put in between
 *         STREAM   a file; "random": 100,000 events without order */
#include "plan/stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static struct fl_detect *fresh(void)
{
    void *p =
        mmap(NULL, fl_detect_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        abort();
    }
    return p;
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds an event, of the program over and over, until a million have been. */
static double cost(const struct stream *s)
{
    struct fl_detect *d = fresh();
    uint32_t *index = calloc(s->blocks + 1, sizeof *index), *distance = calloc(s->n, 4);
    size_t rounds = 1000000 / s->n + 1;
    uint64_t live = 0;

    if (index == NULL || distance == NULL) {
        abort();
    }
    uint32_t requests = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct stream_event *e = &s->event[i];
        if (e->kind < STREAM_FREE) {
            index[e->block] = requests++;
        } else {
            distance[i] = requests - 1 - index[e->block];
        }
    }
    double start = now();
    for (size_t k = 0; k < rounds; k++) {
        live = 0;
        for (size_t i = 0; i < s->n; i++) {
            const struct stream_event *e = &s->event[i];
            if (e->kind < STREAM_FREE) {
                (void)fl_detect_alloc(d, e->size, e->kind, live);
                live += e->size;
            } else if (e->kind != STREAM_MARK) {
                (void)fl_detect_free(d, e->size, distance[i], live);
                live -= e->size;
            }
        }
    }
    double ns = (now() - start) / (double)(rounds * s->n);
    (void)munmap(d, fl_detect_size());
    free(index);
    free(distance);
    return ns;
}

static bool read_any(struct stream *s, const char *name)
{
    enum { RANDOM_EVENTS = 100000 };

    if (strcmp(name, "random") != 0) {
        return stream_read(s, name);
    }
    stream_random(s, RANDOM_EVENTS, 1);
    return true;
}

int main(int argc, char **argv)
{
    unsigned long number[] = {0, 1}; /* FOREIGN, SEED */
    int at = 1;

    for (; at < argc && at <= 2 && argv[at][0] >= '0' && argv[at][0] <= '9'; at++) {
        number[at - 1] = strtoul(argv[at], NULL, 10);
    }
    printf("%-22s %7s %6s %6s %7s %6s %6s %6s %6s %6s %7s %6s\n", "stream", "events", "steps",
           "said", "phases", "right", "first", "worst", "wrong", "lost", "astray", "ns");
    for (; at < argc; at++) {
        struct stream s;
        if (!read_any(&s, argv[at])) {
            fprintf(stderr, "detect: %s is no stream\n", argv[at]);
            return 1;
        }
        stream_disturb(&s, (unsigned)number[0], number[1]);
        struct fl_detect *d = fresh();
        struct judged j = stream_judge(&s, d, 0);
        const char *name = strrchr(argv[at], '/');
        printf("%-22s %7u %6u %6u %7u %6u %6.2f %6.2f %6u %6u %7u %6.1f\n",
               name != NULL ? name + 1 : argv[at], j.events, j.steps, j.said, j.phases, j.right,
               j.first, j.worst, j.wrong, j.lost, j.astray, cost(&s));
        (void)munmap(d, fl_detect_size());
        stream_end(&s);
    }
    return 0;
}
