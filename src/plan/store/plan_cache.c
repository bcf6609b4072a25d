/* The plans of this program, in the order of their use: read from the file of FAULTLESS_PLAN at
 * boot, given to contexts, written when there are new ones and at exit. The memory that the tallest
 * one needs is asked of the stock at once, so that it is there when the first step begins. */
#include "plan/context.h"
#include "plan/store/store.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_PLANS = 16 };

/* Of memory, what may be populated for a plan before its first requests have been seen. */
enum { UNSEEN_SHARE = 64 };

struct entry {
    struct fl_layout *layout; /* the cache's own */
    uint16_t bit;             /* of `given`, where it was there at boot; else 0 */
};

static struct {
    const char *path; /* NULL: nothing is kept */
    char whole[1024]; /* the path, where it had to be made one */
    uint64_t key;
    struct entry entry[KEPT_PLANS]; /* `n` of them, the one used last first. Lock: plan */
    unsigned n;                     /* Lock: plan */
    _Atomic uint64_t latest;        /* signature of the first */
    unsigned at_boot;               /* plans that were there, and how each begins. Constant */
    uint64_t begins[KEPT_PLANS];
    /* By context, a bit for each of these that it has had. Its thread. */
    uint16_t given[FL_CONTEXTS];
    bool reordered;           /* since the file was written. Lock: plan */
    _Atomic bool news;        /* there are some that the file does not have */
    _Atomic uint32_t writing; /* by the worker, or at exit. The latter sleeps on it */
    int pid;                  /* whose plans these are: not a fork's child's */
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

/* ---- the entries ---- */

/* Lock: plan. Which one is of that plan; keep.n: none. */
static unsigned find(uint64_t signature, size_t n)
{
    unsigned i = 0;

    while (i < keep.n &&
           (keep.entry[i].layout->hash != signature || keep.entry[i].layout->n != n)) {
        i++;
    }
    return i;
}

/* Lock: plan. Entry `i` is used now. */
static void use(unsigned i)
{
    struct entry used = keep.entry[i];

    keep.reordered = keep.reordered || i != 0;
    for (; i > 0; i--) {
        keep.entry[i] = keep.entry[i - 1];
    }
    keep.entry[0] = used;
    atomic_store_explicit(&keep.latest, used.layout->hash, memory_order_relaxed);
}

/* Those that are not known yet, as far as there is room, as used before all that we have. */
static void take_plans(const void *file)
{
    struct fl_file_plan p;

    for (size_t at = 0; fl_file_find(file, keep.key, &at, &p) == 0;) {
        fl_plan_lock();
        bool is_wanted = keep.n < KEPT_PLANS && find(p.signature, p.n) == keep.n;
        fl_plan_unlock();
        struct fl_layout *l = is_wanted ? fl_keep_layout(&p) : NULL;
        fl_plan_lock();
        if (l != NULL && keep.n < KEPT_PLANS) {
            keep.entry[keep.n++] = (struct entry){.layout = l};
            l = NULL;
        }
        fl_plan_unlock();
        fl_layout_free(l);
    }
}

/* ---- reading and writing ---- */

/* The file's bytes in plan memory; NULL: there is none that is any good. */
static void *read_file(size_t *out_len, bool speak)
{
    int rc = fl_file_look(keep.path, out_len);
    void *file = rc == 0 ? fl_plan_map(*out_len + 1) : NULL;

    if (rc == 0) {
        rc = file != NULL ? fl_file_read(keep.path, file, *out_len) : -ENOMEM;
    }
    if (rc == 0) {
        return file;
    }
    fl_plan_unmap(file, *out_len + 1);
    if (speak && rc != -ENOENT) {
        complain(rc);
    }
    return NULL;
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
    size_t len = 0, tallest = 0;

    keep.path = whole_path(path);
    if (keep.path == NULL) {
        fl_say("FAULTLESS_PLAN is not used: its path is too long");
        return;
    }
    keep.key = fl_file_key_here();
    keep.pid = fl_call_pid();
    void *file = read_file(&len, true);
    if (file == NULL) {
        return;
    }
    take_plans(file);
    fl_plan_unmap(file, len + 1);
    keep.at_boot = keep.n;
    for (unsigned i = 0; i < keep.n; i++) {
        const struct fl_layout *l = keep.entry[i].layout;
        keep.entry[i].bit = (uint16_t)(1u << i);
        keep.begins[i] = l->begins;
        tallest = fl_max(tallest, (size_t)(l->largest != 0 ? l->largest : l->height));
    }
    if (tallest != 0) {
        size_t most = (size_t)(fl_sys.memory_total(NULL) / UNSEEN_SHARE);
        fl_region_expect(fl_plan.region, fl_min(tallest, most));
    }
}

/* Lock: plan. */
static void add_plans(struct fl_file *f)
{
    for (unsigned i = 0; i < keep.n; i++) {
        const struct fl_layout *l = keep.entry[i].layout;
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

/* Ours as they were used last, with what another process of this program has written since; then
 * the other programs'. */
static int write_file(void)
{
    size_t old_len = 0, size = FL_FILE_HEAD;
    struct fl_file f;
    void *old = read_file(&old_len, false);

    if (old != NULL) {
        take_plans(old);
        size += old_len;
    }
    fl_plan_lock();
    for (unsigned i = 0; i < keep.n; i++) {
        size += fl_file_cost(keep.entry[i].layout->n);
    }
    void *buf = fl_plan_map(size);
    if (buf != NULL && fl_file_begin(&f, buf, size)) {
        add_plans(&f);
    }
    keep.news = false;
    keep.reordered = false;
    fl_plan_unlock();
    if (buf != NULL && old != NULL) {
        (void)fl_file_keep(&f, old, keep.key);
    }
    int rc = buf != NULL ? fl_file_write(keep.path, buf, fl_file_end(&f)) : -ENOMEM;
    fl_plan_unmap(buf, size);
    fl_plan_unmap(old, old_len + 1);
    return rc;
}

/* What the worker writes is not lost with the end. It may be held up: not for long. */
static void let_worker_finish(void)
{
    static const uint64_t at_most_ns = 100000000;

    if (atomic_load(&keep.writing) != 0) {
        (void)fl_sys.wait(&keep.writing, 1, at_most_ns);
    }
}

void fl_keep_save(bool speak)
{
    if (keep.path == NULL || keep.pid != fl_call_pid()) {
        return;
    }
    if (speak) {
        let_worker_finish();
    }
    bool news = keep.news;
    if (!(news || (speak && keep.reordered)) || atomic_exchange(&keep.writing, 1) != 0) {
        return;
    }
    int rc = write_file();
    if (rc != 0 && news) {
        keep.news = true; /* once more, at exit at the latest */
        if (speak) {
            complain(rc);
        }
    }
    atomic_store(&keep.writing, 0);
    (void)fl_sys.wake(&keep.writing, 1);
}

const char *fl_keep_why_nothing(const struct fl_plan_stats *s)
{
    if (keep.path == NULL || keep.n != 0) {
        return NULL;
    }
    if (keep.pid != fl_call_pid()) { /* what it was forked from may have its own */
        return s->layouts != 0 ? "plans of a child of fork are not kept" : NULL;
    }
    if (s->recorded == 0) {
        return "no step was seen (a program may say where one begins, with fl_step_begin)";
    }
    return s->layouts != 0 ? "the plan was made too late"
                           : "the steps seen were too few, or too different, to be planned";
}

/* ---- for contexts ---- */

void fl_keep_adopt(struct fl_step_context *c)
{
    fl_plan_lock();
    keep.given[c->who.id - 1] = 0;
    for (unsigned i = 0; i < keep.n && i < FL_LAYOUTS; i++) {
        fl_context_set_known(c, i, fl_layout_copy(keep.entry[i].layout));
        keep.given[c->who.id - 1] |= keep.entry[i].bit;
    }
    /* Of several it is seen by its first requests which one it is. */
    c->serve.last = keep.n == 1 ? c->serve.known[0] : NULL;
    fl_plan_unlock();
}

/* One more that it knows: in a free place, or in that of one that is neither served nor packed
 * anew. */
static void add_known(struct fl_step_context *c, struct fl_layout *l)
{
    struct fl_layout *old = NULL;
    unsigned i = 0;

    while (i < FL_LAYOUTS && c->serve.known[i] != NULL) {
        i++;
    }
    if (i == FL_LAYOUTS) {
        i = (unsigned)__builtin_popcount(keep.given[c->who.id - 1]) % FL_LAYOUTS;
        while (c->serve.known[i] == c->serve.layout || c->serve.known[i] == c->job.grown) {
            i = (i + 1) % FL_LAYOUTS;
        }
        old = c->serve.known[i];
        c->serve.last = c->serve.last == old ? NULL : c->serve.last;
    }
    fl_context_set_known(c, i, l); /* first: a child of fork may find the context so */
    fl_layout_free(old);
}

struct fl_layout *fl_keep_find(struct fl_step_context *c)
{
    uint64_t begins = keep.at_boot > FL_LAYOUTS ? fl_replay_recent(c) : 0;
    uint16_t *given = &keep.given[c->who.id - 1];
    unsigned id = begins != 0 ? 0 : keep.at_boot;
    struct fl_layout *l = NULL;

    while (id < keep.at_boot && (keep.begins[id] != begins || (*given >> id & 1) != 0)) {
        id++;
    }
    if (id == keep.at_boot) {
        return NULL;
    }
    fl_plan_lock();
    *given |= (uint16_t)(1u << id); /* also where it is gone by now */
    for (unsigned i = 0; i < keep.n && l == NULL; i++) {
        l = keep.entry[i].bit == 1u << id ? fl_layout_copy(keep.entry[i].layout) : NULL;
    }
    fl_plan_unlock();
    if (l != NULL) {
        add_known(c, l);
    }
    return l;
}

void fl_keep_use(const struct fl_layout *l)
{
    if (keep.path == NULL || atomic_load_explicit(&keep.latest, memory_order_relaxed) == l->hash) {
        return;
    }
    fl_plan_lock();
    unsigned i = find(l->hash, l->n);
    if (i < keep.n) {
        use(i);
    }
    fl_plan_unlock();
}

void fl_keep_note(const struct fl_layout *l)
{
    if (keep.path == NULL || keep.pid != fl_call_pid()) {
        return;
    }
    fl_plan_lock();
    struct fl_layout *copy = fl_layout_copy(l);
    if (copy != NULL) {
        unsigned i = find(l->hash, l->n);
        bool is_other = i == keep.n;
        i = i == KEPT_PLANS ? i - 1 : i; /* in place of what was not used for the longest time */
        keep.n = i == keep.n ? i + 1 : keep.n;
        struct entry *e = &keep.entry[i];
        fl_layout_free(e->layout);
        e->bit = is_other ? 0 : e->bit;
        e->layout = copy;
        use(i);
        keep.news = true;
    }
    fl_plan_unlock();
}
