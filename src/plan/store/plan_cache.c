/* Plans that live on: read from the file of FAULTLESS_PLAN at boot, handed to each context that is made, written when new ones are
 * known and at exit. The memory of the tallest is asked of the stock at once, so that it is there when the first step begins.
 * State: `keep`, under the plan lock; constant before the first request but for what fl_keep_note adds. */
#include "plan/internal.h"
#include "plan/store/store.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_PLANS = 16 };

/* Of memory, what may be populated for a plan before its first requests have been seen. */
enum { UNSEEN_SHARE = 64 };

static struct {
    const char *path; /* NULL: nothing is kept */
    char whole[1024]; /* the path, where it had to be made one */
    uint64_t key;
    struct fl_layout *layout[KEPT_PLANS]; /* `n` of them, the newest last */
    unsigned n;
    bool news;            /* there are some that the file does not have */
    _Atomic bool writing; /* by the worker, or at exit */
    int pid;              /* whose plans these are: not a fork's child's */
} keep;

/* Once. */
static void complain(int rc)
{
    static _Atomic bool said;
    char line[512];
    struct fl_text t = fl_text_on(line, sizeof line);

    fl_text_str(&t, "FAULTLESS_PLAN=");
    fl_text_str(&t, keep.path);
    fl_text_str(&t, " is not used: ");
    fl_text_str(&t, fl_file_why(rc));
    if (!atomic_exchange(&said, true)) {
        fl_say(line);
    }
}

/* Bytes that its slots come to, each by itself: no layout is taller. */
static uint64_t sum_of(const struct fl_layout *l)
{
    uint64_t sum = FL_GRANULE;

    for (const struct fl_slot *s = l->slot; s < l->slot + l->n; s++) {
        uint64_t unit = s->size >= FL_HUGE_FROM ? fl_page.huge : FL_GRANULE;
        sum += (fl_align_up(s->size, unit) + s->align) * (s->kind == FL_SLOT_DOUBLED ? 2 : 1);
    }
    return sum;
}

/* Do no two slots that live at once overlap? */
static bool is_sound(struct fl_layout *l)
{
    size_t bytes = 2 * (size_t)l->n * (sizeof(struct fl_pack_buffer) + sizeof(uint32_t));
    size_t scratch_len = fl_pack_scratch(2 * (size_t)l->n);
    struct fl_pack_buffer *b = fl_plan_map_locked(bytes);
    void *scratch = fl_plan_map_locked(scratch_len);
    bool sound = false;

    if (b != NULL && scratch != NULL) {
        uint32_t *back = (uint32_t *)(b + 2 * (size_t)l->n);
        size_t n = fl_merge_buffers(l->slot, l->n, b, back, FL_GRANULE, FL_HUGE_FROM, fl_page.huge);
        for (size_t i = 0; i < n; i++) {
            b[i].offset = b[i].previous;
        }
        sound = fl_pack_is_valid(b, n, l->height, scratch, scratch_len);
    }
    fl_plan_unmap_locked((uintptr_t)b, bytes);
    fl_plan_unmap_locked((uintptr_t)scratch, scratch_len);
    return sound;
}

/* The file has the largest of each size, with its headroom, and not what one step held at once. Where the smallest of each are much less they tell better: an
 * arena that is expected to hold too little grows. 0: what it is high. */
static uint64_t expected(const struct fl_layout *l)
{
    uint64_t least = 0, most = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        if (l->slot[i].kind <= FL_SLOT_DOUBLED) {
            least += l->slot[i].least;
            most += l->slot[i].size;
        }
    }
    return least < most / 10 * 9 ? l->height / 100 * (least / (most / 100 + 1)) : 0;
}

static struct fl_layout *layout_of(const void *file, size_t at, const struct fl_file_plan *p)
{
    struct fl_layout *l = p->granule == FL_GRANULE ? fl_layout_new(p->n) : NULL;

    if (l == NULL) {
        return NULL;
    }
    fl_file_slots(file, at, l->slot);
    l->hash = p->signature;
    l->height = p->height;
    l->horizon = p->horizon; /* it is written again */
    if (l->height > sum_of(l) || !is_sound(l)) {
        fl_layout_free(l);
        return NULL;
    }
    l->largest = expected(l);
    fl_layout_seat(l, NULL);
    return l;
}

static void take_plans(const void *file)
{
    struct fl_file_plan p;
    size_t at = 0, tallest = 0;

    while (keep.n < KEPT_PLANS && fl_file_find(file, keep.key, &at, &p) == 0) {
        struct fl_layout *l = layout_of(file, at, &p);
        if (l != NULL) {
            keep.layout[keep.n++] = l;
            tallest = fl_max(tallest, (size_t)(l->largest != 0 ? l->largest : l->height));
        }
    }
    if (tallest != 0) {
        size_t most = (size_t)(fl_sys.memory_total() / UNSEEN_SHARE);
        fl_region_expect(fl_plan.region, fl_min(tallest, most));
    }
}

/* The file's bytes in plan memory; NULL: there is none that is any good. */
static void *read_file(size_t *out_len, bool speak)
{
    int rc = fl_file_look(keep.path, out_len);
    void *file = rc == 0 ? fl_plan_map_locked(*out_len + 1) : NULL;

    if (file != NULL) {
        rc = fl_file_read(keep.path, file, *out_len);
    } else if (rc == 0) {
        rc = -ENOMEM;
    }
    if (rc != 0) {
        fl_plan_unmap_locked((uintptr_t)file, *out_len + 1);
        if (speak && rc != -ENOENT) {
            complain(rc);
        }
        return NULL;
    }
    return file;
}

/* A program that goes to another folder is to find the same file again. */
static const char *whole_path(const char *path)
{
    struct fl_text t = fl_text_on(keep.whole, sizeof keep.whole);

    if (path[0] == '/') {
        return path;
    }
    if (fl_sys.folder(keep.whole, sizeof keep.whole) != 0) {
        return NULL;
    }
    t.len = strlen(keep.whole);
    fl_text_str(&t, "/");
    fl_text_str(&t, path);
    return t.len + 1 < sizeof keep.whole ? keep.whole : NULL;
}

void fl_keep_load(const char *path)
{
    size_t len = 0;

    keep.path = whole_path(path);
    if (keep.path == NULL) {
        fl_say("FAULTLESS_PLAN is not used: its path is too long");
        return;
    }
    keep.key = fl_file_key_here();
    keep.pid = getpid();
    void *file = read_file(&len, true);
    if (file != NULL) {
        take_plans(file);
        fl_plan_unmap_locked((uintptr_t)file, len + 1);
    }
}

void fl_keep_adopt(struct fl_step_context *c)
{
    fl_plan_lock();
    for (unsigned i = 0; i < keep.n && i < FL_LAYOUTS; i++) {
        c->known[i] = fl_layout_copy(keep.layout[keep.n - 1 - i]);
    }
    fl_plan_unlock();
    /* Of several it is seen by its first requests which one it is. */
    c->last = keep.n == 1 ? c->known[0] : NULL;
}

/* Lock: plan. Forgets plan `i`, for another like it comes; where there is none, and no room, the oldest. */
static void make_room(unsigned i)
{
    if (i == KEPT_PLANS) {
        i = 0;
    }
    if (i < keep.n) {
        fl_plan_unmap((uintptr_t)keep.layout[i], keep.layout[i]->bytes);
        keep.n--;
        for (; i < keep.n; i++) {
            keep.layout[i] = keep.layout[i + 1];
        }
    }
}

void fl_keep_note(const struct fl_layout *l)
{
    unsigned i = 0;

    if (keep.path == NULL || keep.pid != getpid()) {
        return;
    }
    fl_plan_lock();
    while (i < keep.n && (keep.layout[i]->hash != l->hash || keep.layout[i]->n != l->n)) {
        i++;
    }
    struct fl_layout *copy = fl_layout_copy(l);
    if (copy != NULL) {
        make_room(i);
        keep.layout[keep.n++] = copy;
        keep.news = true;
    }
    fl_plan_unlock();
}

/* Lock: plan. */
static void add_all(struct fl_file *f)
{
    for (unsigned i = 0; i < keep.n; i++) {
        const struct fl_layout *l = keep.layout[i];
        struct fl_file_plan p = {.key = keep.key,
                                 .signature = l->hash,
                                 .horizon = l->horizon,
                                 .height = l->height,
                                 .granule = FL_GRANULE,
                                 .slot = l->slot,
                                 .n = l->n};
        (void)fl_file_add(f, &p);
    }
}

static void write_file(bool speak)
{
    size_t old_len = 0, size = FL_FILE_HEAD;
    struct fl_file f;
    void *old = read_file(&old_len, false);

    fl_plan_lock();
    keep.news = false;
    for (unsigned i = 0; i < keep.n; i++) {
        size += fl_file_cost(keep.layout[i]->n);
    }
    size += old != NULL ? old_len : 0;
    void *buf = fl_plan_map(size);
    bool made = buf != NULL && fl_file_begin(&f, buf, size);
    if (made) {
        add_all(&f);
    }
    fl_plan_unlock();
    if (made) {
        if (old != NULL) {
            (void)fl_file_keep(&f, old, keep.key);
        }
        int rc = fl_file_write(keep.path, buf, fl_file_end(&f));
        keep.news = rc != 0; /* once more at exit */
        if (speak && rc != 0) {
            complain(rc);
        }
    }
    fl_plan_unmap_locked((uintptr_t)buf, size);
    fl_plan_unmap_locked((uintptr_t)old, old_len + 1);
}

void fl_keep_save(bool speak)
{
    if (keep.path != NULL && keep.news && keep.pid == getpid() &&
        !atomic_exchange(&keep.writing, true)) {
        write_file(speak);
        atomic_store(&keep.writing, false);
    }
}
