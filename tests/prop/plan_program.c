#include "prop/plan_program.h"

#include "alloc/alloc.h"
#include "prop/seed.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { REQUESTS = 48, SHAPES = 3, BEYOND = 8 };
#define PAGE fl_page.base

#define MUST(what) ((what) ? (void)0 : wrong(#what, __LINE__))

static _Noreturn void wrong(const char *what, int line)
{
    fprintf(stderr, "plan_program.c:%d: not so: %s\n", line, what);
    abort();
}

struct block {
    unsigned char *p; /* NULL: none */
    size_t n;         /* bytes */
    uint64_t stamp;
};

/* What a step asks for, and when each of it is freed: so many requests later; past the step's end,
 * in the next one. */
struct request {
    size_t n;
    unsigned how;
    unsigned lives;
};

struct program {
    struct program_how how;
    uint64_t random, stamps;
    struct request shape[SHAPES][REQUESTS];
    unsigned now;                      /* the shape */
    unsigned n[SHAPES];                /* requests in a step */
    struct block live[2][REQUESTS];    /* by the step's parity */
    struct block kept[BEYOND];         /* survive for some time */
    struct fl_step_context *mine, *in; /* in: that of the step under way */
};

/* Handed over: the thread that empties it frees. */
static _Atomic(struct block *) box[PROGRAM_BOXES];

static uint64_t draw(struct program *g, uint64_t below)
{
    return seed_next(&g->random) % below;
}

static uint64_t word_of(const struct block *b, size_t at)
{
    return b->stamp * 0x9e3779b97f4a7c15 ^ at;
}

/* The first word of each base page, and the last one of those that are whole, so that a block that
 * shares a page with it is found out. */
static void write_stamp(const struct block *b)
{
    for (size_t at = 0; at + 8 <= b->n; at += PAGE) {
        *(uint64_t *)(b->p + at) = word_of(b, at);
        if (at + PAGE <= b->n) {
            *(uint64_t *)(b->p + at + PAGE - 8) = word_of(b, at);
        }
    }
}

/* Are the first `n` bytes as they were? */
static bool is_stamped(const struct block *b, size_t n)
{
    for (size_t at = 0; at + 8 <= n; at += PAGE) {
        if (*(const uint64_t *)(b->p + at) != word_of(b, at) ||
            (at + PAGE <= n && *(const uint64_t *)(b->p + at + PAGE - 8) != word_of(b, at))) {
            return false;
        }
    }
    return true;
}

static bool is_zero(const unsigned char *p, size_t n)
{
    for (size_t at = 0; at + 8 <= n; at += 256) {
        if (*(const uint64_t *)(p + at) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_ours(const void *p)
{
    return fl_is_ours(p);
}

static void free_any(void *p)
{
    if (is_ours(p)) {
        fl_free_ours(p);
    } else {
        fl_route.next.free(p);
    }
}

static void note_hands(const struct block *b, size_t at)
{
    struct fl_range page = {(uintptr_t)b->p + at, PAGE};

    fl_region_note_remapped(fl_route.region, page);
    MUST(mprotect(b->p + at, PAGE, PROT_READ) == 0);
}

static void drop(struct program *g, struct block *b)
{
    if (b->p == NULL) {
        return;
    }
    MUST(is_stamped(b, b->n));
    if (g->how.hands && is_ours(b->p) && draw(g, 300) == 0) {
        note_hands(b, draw(g, b->n / PAGE) * PAGE);
    }
    free_any(b->p);
    b->p = NULL;
}

static void hand_over(struct program *g, struct block *b)
{
    if (b->p == NULL) {
        return;
    }
    struct block *mine = malloc(sizeof *mine);
    MUST(mine != NULL);
    *mine = *b;
    b->p = NULL;
    struct block *other = atomic_exchange(&box[draw(g, PROGRAM_BOXES)], mine);
    if (other != NULL) {
        drop(g, other);
        free(other);
    }
}

static struct block make(struct program *g, size_t n, unsigned how)
{
    struct block b = {NULL, n, ++g->stamps};
    size_t align = PAGE << draw(g, 6);

    switch (how % 8) {
    case 0:
        b.p = fl_calloc_large(n);
        MUST(b.p == NULL || is_zero(b.p, n));
        break;
    case 1:
        b.p = fl_memalign_large(align, n);
        MUST((uintptr_t)b.p % align == 0);
        break;
    case 2: /* longer than what was asked for first */
        b.n = n / 2;
        b.p = fl_malloc_large(b.n);
        if (b.p != NULL) {
            write_stamp(&b);
            b.p = fl_realloc_any(b.p, n);
            MUST(b.p != NULL && is_stamped(&b, n / 2));
            b.n = n;
        }
        break;
    default:
        b.p = fl_malloc_large(n);
    }
    MUST(b.p != NULL);
    MUST(!is_ours(b.p) || fl_usable_ours(b.p) >= n);
    write_stamp(&b);
    return b;
}

static void resize(struct program *g, struct block *b, size_t n)
{
    if (b->p != NULL) {
        b->p = fl_realloc_any(b->p, n);
        MUST(b->p != NULL && is_stamped(b, fl_min(b->n, n)));
        b->n = n;
        b->stamp = ++g->stamps;
        write_stamp(b);
    }
}

static size_t some_size(struct program *g)
{
    size_t from = (size_t)(32 * FL_KIB) << draw(g, 6);

    return draw(g, 400) == 0 ? 33 * FL_MIB + draw(g, FL_MIB) : from + draw(g, from);
}

static void draw_shape(struct program *g, unsigned s)
{
    g->n[s] = 4 + (unsigned)draw(g, REQUESTS - 4);
    for (unsigned i = 0; i < g->n[s]; i++) {
        struct request *r = &g->shape[s][i];
        *r = (struct request){some_size(g), (unsigned)draw(g, 16), 1 + (unsigned)draw(g, 12)};
        if (draw(g, 8) == 0) { /* into the next step, and maybe past its own like there */
            r->lives = g->n[s] + (unsigned)draw(g, g->n[s]);
        }
    }
}

/* All that is due after `done` requests of this step. */
static void drop_due(struct program *g, unsigned step, unsigned done)
{
    const struct request *r = g->shape[g->now];
    unsigned n = g->n[g->now];

    for (unsigned k = 0; k < REQUESTS; k++) {
        if (k >= n || k + r[k].lives == done) {
            drop(g, &g->live[step % 2][k]);
        }
        if (k >= n || k + r[k].lives == done + n) {
            drop(g, &g->live[(step + 1) % 2][k]);
        }
    }
}

/* What no step has, or not this one. True: the request is left out. */
static bool stray(struct program *g, unsigned step, unsigned i)
{
    struct block extra;

    switch (draw(g, 160)) {
    case 0:
        extra = make(g, some_size(g), (unsigned)draw(g, 8));
        drop(g, &extra);
        break;
    case 1:
        drop(g, &g->kept[draw(g, BEYOND)]);
        break;
    case 2: {
        struct block *k = &g->kept[draw(g, BEYOND)];
        drop(g, k);
        *k = make(g, some_size(g), 4);
        break;
    }
    case 3:
        hand_over(g, &g->live[step % 2][draw(g, i + 1)]);
        break;
    case 4:
        resize(g, &g->live[step % 2][draw(g, i + 1)], some_size(g));
        break;
    case 5:
        return true;
    default:
        break;
    }
    return false;
}

static void one_step(struct program *g, unsigned step, size_t scale)
{
    unsigned n = g->n[g->now];

    for (unsigned i = 0; i < n; i++) {
        const struct request *r = &g->shape[g->now][i];
        struct block *b = &g->live[step % 2][i];
        drop_due(g, step, i);
        if (!g->how.steady && stray(g, step, i)) {
            continue;
        }
        drop(g, b);
        *b = make(g, fl_max(r->n * scale / 16, PAGE), r->how);
    }
    for (unsigned k = 0; k < n; k++) {
        if (k + g->shape[g->now][k].lives <= n) {
            drop(g, &g->live[step % 2][k]);
        }
    }
}

/* Another shape, or the same one with other sizes. */
static size_t before_step(struct program *g, unsigned step, size_t scale)
{
    if (g->how.steady) {
        return 16;
    }
    switch (draw(g, 24)) {
    case 0:
        draw_shape(g, (unsigned)draw(g, SHAPES));
        break;
    case 1:
        return 8 + draw(g, 16);
    case 2:
        return 16;
    default:
        break;
    }
    g->now = step / 16 % SHAPES;
    return scale;
}

static void begin(struct program *g)
{
    if (!g->how.declares) {
        return;
    }
    unsigned which = g->how.steady ? 0 : (unsigned)draw(g, 12);
    g->in = which == 1 ? g->mine : which == 2 ? g->how.shared : NULL;
    int rc = fl_plan_begin(g->in);
    if (rc == -EBUSY && g->in == g->how.shared) {
        g->in = NULL;
        rc = fl_plan_begin(NULL);
    }
    MUST(rc == 0);
    MUST(fl_plan_begin(g->in) == -EINVAL);
    struct fl_plan_layout
        l; /* most ask where blocks lie, or threads that step at once have no plan */
    rc = draw(g, 4) != 0 ? fl_plan_layout(g->in, &l, NULL, 0) : 0;
    MUST(rc == 0 || rc == -ENODATA);
}

static void end(struct program *g)
{
    if (g->how.declares) {
        MUST(fl_plan_end(g->in) == 0);
    }
}

static void end_thread(void)
{
    fl_plan_thread_ends();
    if (fl_thread_cache() != NULL) {
        fl_thread_end(fl_thread_cache());
    }
}

void program_run(const struct program_how *how)
{
    struct program *g = calloc(1, sizeof *g);
    size_t scale = 16;

    MUST(g != NULL);
    g->how = *how;
    g->random = g->stamps = how->seed;
    for (unsigned s = 0; s < SHAPES; s++) {
        draw_shape(g, s);
    }
    if (how->declares) {
        MUST(fl_plan_context_new(&g->mine) == 0);
    }
    for (unsigned step = 0; step < how->steps; step++) {
        scale = before_step(g, step, scale);
        begin(g);
        one_step(g, step, scale);
        if (!how->steady && draw(g, 10) == 0) { /* a step within the step */
            bool inner = how->declares && g->in != g->mine;
            MUST(!inner || fl_plan_begin(g->mine) == 0);
            one_step(g, step, scale);
            MUST(!inner || fl_plan_end(g->mine) == 0);
        }
        end(g);
    }
    bool early = draw(g, 2) == 0; /* the thread's contexts go before its blocks, or after */
    if (early) {
        end_thread();
    }
    for (unsigned i = 0; i < 2 * REQUESTS; i++) {
        struct block *b = &g->live[i / REQUESTS][i % REQUESTS];
        if (draw(g, 3) == 0) {
            hand_over(g, b);
        }
        drop(g, b);
    }
    for (unsigned i = 0; i < BEYOND; i++) {
        drop(g, &g->kept[i]);
    }
    MUST(g->mine == NULL || fl_plan_context_free(g->mine) == 0);
    end_thread();
    free(g);
}

void program_empty_boxes(void)
{
    struct program empty = {.random = 1};

    for (unsigned i = 0; i < PROGRAM_BOXES; i++) {
        struct block *b = atomic_exchange(&box[i], NULL);
        if (b != NULL) {
            drop(&empty, b);
            free(b);
        }
    }
}
