/* Tracks, tags, and the table of what is allocated now.
 *
 * State: the list of tracks, and the names of tags, which are never dropped. Lock: `mutex`, which
 * comes before an owner's. */
#include "gpu/trace/trace.h"

#include "gpu/driver/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAGS = 4096,   /* a power of two: places of the table; three quarters are used */
    TAG_SIZE = 64, /* bytes, with the NUL */
    TEXT = 4 * FL_KIB,
    LONGEST = 512, /* bytes that one line may come to */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fl_gpu_track *tracks;
static char
    *tags[TAGS]; /* by their hash, then the next place that is free; a tag is its place + 1 */
static unsigned tags_used;
static _Thread_local uint32_t tag;

/* Tracks */

void fl_gpu_track_open(struct fl_gpu_track *k)
{
    (void)pthread_mutex_lock(&mutex);
    k->next = tracks;
    tracks = k;
    (void)pthread_mutex_unlock(&mutex);
}

void fl_gpu_track_close(struct fl_gpu_track *k)
{
    (void)pthread_mutex_lock(&mutex);
    fl_gpu_stats_close(k);
    for (struct fl_gpu_track **at = &tracks; *at != NULL; at = &(*at)->next) {
        if (*at == k) {
            *at = k->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
}

bool fl_gpu_tracks_acquire(bool soon, const struct fl_gpu_track **out)
{
    int rc = soon ? pthread_mutex_trylock(&mutex) : pthread_mutex_lock(&mutex);

    *out = tracks;
    return rc == 0;
}

void fl_gpu_tracks_release(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

void fl_gpu_tracks_fork_child(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    fl_gpu_stats_fork_child();
    tracks = NULL; /* the parent's pools are not the child's */
}

/* Tags */

/* FNV-1a. */
static unsigned hash(const char *name, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++) {
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    }
    return h % TAGS;
}

/* 0: there is no room for more names. */
static uint32_t find_tag(const char *name, size_t len)
{
    unsigned at = hash(name, len);

    while (tags[at] != NULL) {
        if (strncmp(tags[at], name, len) == 0 && tags[at][len] == '\0') {
            return at + 1;
        }
        at = (at + 1) % TAGS;
    }
    if (tags_used == TAGS / 4 * 3 || (tags[at] = malloc(len + 1)) == NULL) {
        return 0;
    }
    tags_used++;
    memcpy(tags[at], name, len);
    tags[at][len] = '\0';
    return at + 1;
}

void fl_gpu_tag(const char *name)
{
    size_t len = name == NULL ? 0 : strnlen(name, TAG_SIZE - 1);

    tag = 0;
    if (len != 0 && !fl_gpu_is_forked()) {
        (void)pthread_mutex_lock(&mutex);
        tag = find_tag(name, len);
        (void)pthread_mutex_unlock(&mutex);
    }
}

uint32_t fl_gpu_tag_now(void)
{
    return tag;
}

/* The table */

struct row {
    struct fl_gpu_live live;
    const struct fl_gpu_track *track;
};

struct rows {
    struct row *row;
    size_t n, room;
    const struct fl_gpu_track *track;
    bool lost; /* no memory for all */
};

static void add_row(void *arg, const struct fl_gpu_live *l)
{
    struct rows *all = arg;

    if (all->n == all->room) {
        size_t room = all->room == 0 ? 256 : 2 * all->room;
        struct row *more = realloc(all->row, room * sizeof *more);
        if (more == NULL) {
            all->lost = true;
            return;
        }
        all->row = more;
        all->room = room;
    }
    all->row[all->n++] = (struct row){*l, all->track};
}

static const char *name_of(const struct row *r)
{
    return r->live.tag == 0 ? "<unk>" : tags[r->live.tag - 1];
}

static bool is_before(const struct row *a, const struct row *b)
{
    int names = strcmp(name_of(a), name_of(b));

    return names != 0 ? names < 0 : a->live.requested > b->live.requested;
}

/* By names, then the largest first. Shell's sort: qsort may allocate. */
static void sort(struct row *row, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (size_t i = gap; i < n; i++) {
            struct row moving = row[i];
            size_t to = i;
            for (; to >= gap && is_before(&moving, &row[to - gap]); to -= gap) {
                row[to] = row[to - gap];
            }
            row[to] = moving;
        }
    }
}

static void append_field(struct fl_text *t, const char *text, bool last)
{
    fl_text_str(t, "\"");
    for (; *text != '\0'; text++) {
        const char c[3] = {*text, *text == '"' ? '"' : '\0', '\0'};
        if ((unsigned char)*text >= ' ') {
            fl_text_str(t, c);
        }
    }
    fl_text_str(t, last ? "\"\n" : "\",");
}

static void append_number(struct fl_text *t, uint64_t v)
{
    fl_text_str(t, "\"");
    fl_text_u64(t, v);
    fl_text_str(t, "\",");
}

/* MXNet's columns, in its order. */
static void append_row(struct fl_text *t, const struct row *r)
{
    append_field(t, name_of(r), false);
    append_number(t, r->live.requested);
    if (r->track->target == FL_GPU_PINNED) {
        append_field(t, "cpu_pinned", false);
    } else {
        append_number(t, (uint64_t)r->track->device);
    }
    append_number(t, r->live.actual);
    append_field(t, r->live.reused ? "1" : "0", true);
}

static int write_rows(const char *path, const struct rows *all)
{
    char text[TEXT];
    struct fl_text t = fl_text_on(text, sizeof text);
    int rc;

    fl_text_str(&t,
                "\"Attribute Name\",\"Requested Size\",\"Device\",\"Actual Size\",\"Reuse?\"\n");
    rc = fl_sys.replace_file(path, t.buf, t.len);
    t = fl_text_on(text, sizeof text);
    for (size_t i = 0; rc == 0 && i < all->n; i++) {
        append_row(&t, &all->row[i]);
        if (t.len > sizeof text - LONGEST || i + 1 == all->n) {
            rc = fl_sys.append_file(path, t.buf, t.len);
            t = fl_text_on(text, sizeof text);
        }
    }
    return rc == 0 ? 0 : fl_gpu_fail(rc, "the file of the table cannot be written");
}

int fl_gpu_trace_csv(const char *path)
{
    struct rows all = {.row = NULL};
    int rc;

    if (path == NULL || *path == '\0') {
        return fl_gpu_fail(-EINVAL, "fl_gpu_trace_csv: no file");
    }
    if (fl_gpu_is_forked()) {
        return fl_gpu_fail(-ECHILD, "a fork's child: what is allocated is its parent's");
    }
    (void)pthread_mutex_lock(&mutex);
    for (const struct fl_gpu_track *k = tracks; k != NULL; k = k->next) {
        if (k->each != NULL) {
            all.track = k;
            k->each(k->owner, add_row, &all);
        }
    }
    sort(all.row, all.n);
    rc = all.lost ? fl_gpu_fail(-ENOMEM, "no memory for the table") : write_rows(path, &all);
    (void)pthread_mutex_unlock(&mutex);
    free(all.row);
    return rc;
}
