/* Reads a packed stream (the format: pack_stream.py) and makes one up. */
#include "plan/stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, KINDS = 8 };

/* The blocks that each thread has asked for. */
struct asked {
    uint32_t *block[THREADS];
    uint64_t *size; /* by block */
    size_t count[THREADS], room[THREADS], sizes;
};

static void *grown(void *p, size_t n, size_t each)
{
    p = realloc(p, n * each);
    if (p == NULL) {
        abort();
    }
    return p;
}

void stream_add(struct stream *s, struct stream_event e)
{
    if (s->n == s->room) {
        s->room = s->room == 0 ? 4096 : 2 * s->room;
        s->event = grown(s->event, s->room, sizeof s->event[0]);
    }
    s->event[s->n++] = e;
}

void stream_end(struct stream *s)
{
    free(s->event);
    memset(s, 0, sizeof *s);
}

static bool number(FILE *f, uint64_t *out)
{
    int c = 0x80;

    *out = 0;
    for (unsigned shift = 0; (c & 0x80) != 0 && shift < 64; shift += 7) {
        c = getc(f);
        if (c == EOF) {
            return false;
        }
        *out |= (uint64_t)(c & 0x7f) << shift;
    }
    return (c & 0x80) == 0;
}

static void request(struct stream *s, struct asked *a, struct stream_event e)
{
    uint8_t t = e.thread;

    if (a->count[t] == a->room[t]) {
        a->room[t] = a->room[t] == 0 ? 1024 : 2 * a->room[t];
        a->block[t] = grown(a->block[t], a->room[t], sizeof a->block[t][0]);
    }
    if (s->blocks == a->sizes) {
        a->sizes = a->sizes == 0 ? 1024 : 2 * a->sizes;
        a->size = grown(a->size, a->sizes, sizeof a->size[0]);
    }
    a->size[s->blocks] = e.size;
    a->block[t][a->count[t]++] = s->blocks;
    e.block = s->blocks++;
    stream_add(s, e);
}

static bool release(struct stream *s, struct asked *a, struct stream_event e, uint64_t distance)
{
    if (distance >= a->count[e.owner]) {
        return false;
    }
    e.block = a->block[e.owner][a->count[e.owner] - 1 - distance];
    e.size = a->size[e.block];
    stream_add(s, e);
    return true;
}

/* The event `e` once more, with a block of its own: `distance` is what it was. */
static bool again(struct stream *s, struct asked *a, size_t from, const uint64_t *distance)
{
    struct stream_event e = s->event[from];

    if (e.kind < STREAM_FREE) {
        request(s, a, e);
        return true;
    }
    if (e.kind == STREAM_MARK) {
        stream_add(s, e);
        return true;
    }
    return release(s, a, e, distance[from]);
}

static bool literal(FILE *f, struct stream *s, struct asked *a, uint64_t word, uint64_t *distance)
{
    struct stream_event e = {.kind = (uint8_t)(word % KINDS), .thread = (uint8_t)(word / KINDS)};
    uint64_t value = 0, owner = e.thread;

    if (e.kind == STREAM_MARK) {
        stream_add(s, e);
        return true;
    }
    if ((e.kind == STREAM_FOREIGN && (!number(f, &owner) || owner >= THREADS)) ||
        !number(f, &value)) {
        return false;
    }
    e.owner = (uint8_t)owner;
    if (e.kind < STREAM_FREE) {
        e.size = value;
        request(s, a, e);
        return true;
    }
    *distance = value;
    return release(s, a, e, value);
}

static bool read_events(FILE *f, struct stream *s, struct asked *a)
{
    uint64_t word, back, *distance = NULL;
    bool good = true;

    for (size_t room = 0; good && number(f, &word);) {
        size_t count = word % KINDS == 7 ? word / KINDS : 1;
        if (s->n + count > room) {
            room = 2 * (s->n + count) + 4096;
            distance = grown(distance, room, sizeof *distance);
        }
        if (word % KINDS != 7) {
            good = literal(f, s, a, word, &distance[s->n]);
            continue;
        }
        good = number(f, &back) && back != 0 && back <= s->n;
        for (; good && count > 0; count--) {
            distance[s->n] = distance[s->n - back];
            good = again(s, a, s->n - back, distance);
        }
    }
    free(distance);
    return good && feof(f);
}

bool stream_read(struct stream *s, const char *path)
{
    struct asked a = {.sizes = 0};
    FILE *f = fopen(path, "rb");
    char line[512];

    memset(s, 0, sizeof *s);
    if (f == NULL) {
        return false;
    }
    bool good = fgets(line, sizeof line, f) != NULL &&
                strncmp(line, "faultless stream 1:", 19) == 0 && read_events(f, s, &a);
    (void)fclose(f);
    for (int t = 0; t < THREADS; t++) {
        free(a.block[t]);
    }
    free(a.size);
    return good;
}

uint64_t stream_next(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void stream_random(struct stream *s, size_t n, uint64_t seed)
{
    enum { MOST = 64 };
    struct stream_event live[MOST];
    size_t lives = 0;

    memset(s, 0, sizeof *s);
    while (s->n < n) {
        if (stream_next(&seed) % MOST >= lives) {
            uint64_t size = (uint64_t)1 << (16 + stream_next(&seed) % 8);
            live[lives] = (struct stream_event){.block = s->blocks++,
                                                .size = size + stream_next(&seed) % size};
            stream_add(s, live[lives++]);
        } else {
            size_t i = stream_next(&seed) % lives;
            live[i].kind = STREAM_FREE;
            stream_add(s, live[i]);
            live[i] = live[--lives];
        }
    }
}

void stream_disturb(struct stream *s, unsigned thousandths, uint64_t seed)
{
    enum { MOST = 16 };
    struct stream_event live[MOST];
    struct stream out = {.blocks = s->blocks};
    size_t lives = 0;

    for (size_t i = 0; i < s->n; i++) {
        stream_add(&out, s->event[i]);
        if (stream_next(&seed) % 1000 >= thousandths) {
            continue;
        }
        if (lives == MOST || (lives != 0 && stream_next(&seed) % 2 == 0)) {
            size_t k = stream_next(&seed) % lives;
            live[k].kind = STREAM_FREE;
            stream_add(&out, live[k]);
            live[k] = live[--lives];
        } else {
            live[lives] = (struct stream_event){.block = out.blocks++,
                                                .size = 65536 + stream_next(&seed) % 1000000};
            stream_add(&out, live[lives++]);
        }
    }
    stream_end(s);
    *s = out;
}
