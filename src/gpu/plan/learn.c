/* A step's requests as they come, packed when it ends; and the public calls of plans. */
#include "gpu/plan/plan.h"
#include "pack/pack.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum {
    LIVES_MOST = 1 << 20,
    UNLIKE_LEAST = 2,
    UNLIKE_MOST = 1 << 20,
    LIKE_LONG = 256,
    PACK_COST = 400000,
    STREAMS_MOST = 256,
    AHEAD = 8
};

/* ---- seeing ---- */

void fl_learn_saw_alloc(struct fl_gpu_pool *p, struct fl_pool_block *b,
                        const struct fl_pool_stream *s)
{
    struct fl_pool_plan *plan = p->plan;

    if (!plan->is_joint &&
        atomic_load_explicit(&plan->owner, memory_order_relaxed) != fl_stream_thread()) {
        return;
    }
    if (plan->lives == plan->life_room) {
        size_t more = fl_max(1024, 2 * plan->life_room);
        struct fl_pool_life *grown =
            more <= LIVES_MOST ? realloc(plan->life, more * sizeof *grown) : NULL;
        if (grown == NULL) {
            p->is_learning = false;
            return;
        }
        plan->life = grown;
        plan->life_room = more;
    }
    plan->life[plan->lives++] =
        (struct fl_pool_life){.len = b->len, .birth = ++plan->clock, .stream = s};
    b->life = (uint32_t)plan->lives;
}

void fl_learn_saw_free(struct fl_gpu_pool *p, struct fl_pool_block *b,
                       const struct fl_pool_stream *s)
{
    struct fl_pool_plan *plan = p->plan;

    if (p->is_learning && b->life <= plan->lives) {
        struct fl_pool_life *life = &plan->life[b->life - 1];
        life->death = ++plan->clock;
        life->is_shared = s != life->stream || b->use != NULL;
    }
    b->life = 0;
}

/* ---- alike ---- */

/* How many requests of `b` are those of `a`, in their order, but for some that are left out. */
static size_t count_same(const struct fl_pool_life *a, size_t na, const struct fl_pool_life *b,
                         size_t nb)
{
    size_t same = 0, j = 0;

    for (size_t i = 0; i < na && j < nb; i++) {
        size_t at = j, end = fl_min(nb, j + AHEAD);
        while (at < end && a[i].len != b[at].len) {
            at++;
        }
        if (at < end) {
            j = at + 1;
            same++;
        }
    }
    return same;
}

/* Is the step that has ended as the one before it? The first one of a program is as no other: it
 * makes what stays. It is the one before of the next. */
static bool is_as_before(struct fl_pool_plan *plan)
{
    size_t most = fl_max(plan->lives, plan->befores);
    bool alike = plan->befores != 0 && count_same(plan->before, plan->befores, plan->life,
                                                  plan->lives) >= most - most / 4;
    struct fl_pool_life *before = plan->before;
    size_t room = plan->before_room;

    if (!alike) {
        plan->before = plan->life;
        plan->befores = plan->lives;
        plan->before_room = plan->life_room;
        plan->life = before;
        plan->life_room = room;
    }
    return alike;
}

/* ---- packing ---- */

/* What is packed: the lives of one stream after the other, each above those before it, so that
 * nothing of one lies where something of another did. */
struct packing {
    const struct fl_pool_plan *plan;
    struct fl_pack_buffer *buffer;
    uint32_t *life;  /* of each buffer */
    uint8_t *stream; /* of each life: a number; the last one is that of all further streams */
    unsigned streams;
    struct fl_pack_how how;
};

static void number_streams(struct packing *k)
{
    const struct fl_pool_stream *seen[STREAMS_MOST] = {NULL};

    for (size_t i = 0; i < k->plan->lives; i++) {
        unsigned s = 0;
        while (s < k->streams && seen[s] != k->plan->life[i].stream) {
            s++;
        }
        if (s == k->streams && s < STREAMS_MOST) {
            seen[k->streams++] = k->plan->life[i].stream;
        }
        k->stream[i] = (uint8_t)fl_min(s, STREAMS_MOST - 1);
    }
}

/* The stream's lives that have ended. */
static size_t as_buffers(struct packing *k, unsigned stream)
{
    size_t n = 0;

    for (size_t i = 0; i < k->plan->lives; i++) {
        const struct fl_pool_life *life = &k->plan->life[i];
        if (k->stream[i] != stream || life->death == 0) {
            continue;
        }
        k->life[n] = (uint32_t)i;
        k->buffer[n++] = (struct fl_pack_buffer){
            .size = life->len,
            .align = FL_POOL_UNIT,
            .birth = life->birth,
            .death = life->is_shared ? k->plan->clock + 1 : life->death,
        };
    }
    return n;
}

/* Returns what fl_pack does; -ENOENT: nothing has ended. */
static int pack_streams(struct packing *k, struct fl_gpu_slot *slot)
{
    uint64_t floor = 0;
    int rc = 0;

    number_streams(k);
    for (unsigned s = 0; s < k->streams && rc == 0; s++) {
        struct fl_pack_result result;
        size_t n = as_buffers(k, s);
        rc = fl_pack(k->buffer, n, &k->how, &result);
        for (size_t i = 0; i < n && rc == 0; i++) {
            slot[k->life[i]].offset = (size_t)(floor + k->buffer[i].offset);
        }
        floor += rc == 0 ? fl_align_up(result.height, FL_POOL_UNIT) : 0;
    }
    return rc == 0 && floor == 0 ? -ENOENT : rc;
}

static int pack(const struct fl_pool_plan *plan, struct fl_gpu_slot *slot)
{
    size_t n = plan->lives, len = fl_align_up(fl_pack_scratch(n), fl_page.base);
    struct packing k = {.plan = plan,
                        .buffer = calloc(n, sizeof *k.buffer),
                        .life = calloc(n, sizeof *k.life),
                        .stream = calloc(n, sizeof *k.stream),
                        .how = {.budget_cost = PACK_COST, .scratch_len = len}};
    int rc = -ENOMEM;

    k.how.scratch = aligned_alloc(fl_page.base, len);
    for (size_t i = 0; i < n; i++) {
        slot[i] = (struct fl_gpu_slot){.size = plan->life[i].len, .offset = SIZE_MAX};
    }
    if (k.buffer != NULL && k.life != NULL && k.stream != NULL && k.how.scratch != NULL) {
        rc = pack_streams(&k, slot);
    }
    free(k.how.scratch);
    free(k.stream);
    free(k.life);
    free(k.buffer);
    return rc;
}

/* The step that has ended as a layout. Nothing to plan, or nothing to gain: 0, and the next one is
 * learned. */
static int learned(struct fl_gpu_pool *p)
{
    struct fl_pool_plan *plan = p->plan;
    struct fl_gpu_slot *slot = plan->lives != 0 ? calloc(plan->lives, sizeof *slot) : NULL;
    int rc = slot == NULL ? -ENOENT : pack(plan, slot);

    rc = rc == 0 ? fl_planned_install(p, slot, plan->lives) : rc;
    free(slot);
    return rc == -ENOENT ? 0 : rc;
}

static void begin_learning(struct fl_gpu_pool *p)
{
    fl_lock_acquire(&p->lock);
    for (struct fl_pool_chunk *c = p->chunks; c != NULL; c = c->next) {
        for (struct fl_pool_block *b = c->first; b != NULL; b = b->after) {
            b->life = 0;
        }
    }
    p->plan->lives = 0;
    p->plan->clock = 0;
    p->is_learning = true;
    fl_lock_release(&p->lock);
}

/* ---- steps ---- */

static size_t more_patience(struct fl_pool_plan *plan)
{
    plan->patience = fl_min(2 * fl_max(plan->patience, UNLIKE_LEAST), UNLIKE_MOST);
    return plan->patience;
}

static int next_step(struct fl_gpu_pool *p)
{
    struct fl_pool_plan *plan = p->plan;
    const struct fl_pool_layout *l = fl_planned_layout(p);

    bool unlike = plan->misses > l->n / 4;

    plan->unlike_steps = unlike ? plan->unlike_steps + 1 : 0;
    plan->like_steps = unlike ? 0 : plan->like_steps + 1;
    if (plan->patience < UNLIKE_LEAST || plan->like_steps >= LIKE_LONG) {
        plan->patience = UNLIKE_LEAST;
    }
    plan->cursor = 0;
    plan->misses = 0;
    plan->step++;
    if (plan->unlike_steps >= plan->patience && fl_planned_live(plan) == 0 &&
        fl_planned_remove(p) == 0) {
        (void)more_patience(plan);
        begin_learning(p);
    }
    return 0;
}

static int step(struct fl_gpu_pool *p)
{
    int rc = 0;

    atomic_store_explicit(&p->plan->owner, fl_stream_thread(), memory_order_relaxed);
    if (p->gc_at != 0) {
        fl_lock_acquire(&p->lock);
        fl_collect_batch(p, true);
        fl_lock_release(&p->lock);
    }
    if (fl_planned_layout(p) != NULL) {
        return next_step(p);
    }
    fl_lock_acquire(&p->lock);
    bool was = p->is_learning;
    p->is_learning = false;
    fl_lock_release(&p->lock);
    if (was && is_as_before(p->plan)) {
        rc = learned(p);
        p->plan->rest = fl_planned_layout(p) == NULL ? more_patience(p->plan) : 0;
    }
    if (fl_planned_layout(p) == NULL && (p->plan->rest == 0 || --p->plan->rest == 0)) {
        begin_learning(p);
    }
    return rc == -ENOMEM || rc == -EINPROGRESS ? 0 : rc;
}

/* And the turn, where there are turns. */
static int with_context(struct fl_gpu_pool *p, struct fl_gpu_guard *g)
{
    int rc = fl_pool_refuse(p);

    if (rc == 0 && p->plan == NULL) {
        rc = fl_gpu_fail(-EINVAL, "the pool's strategy is not planned");
    }
    rc = rc != 0 ? rc : fl_pool_enter(p, g);
    while (rc == 0 && p->plan->is_joint && !fl_planned_enter(p->plan)) {
        (void)fl_call(SYS_sched_yield); /* a request is placed: short, but for the driver */
    }
    return rc;
}

int fl_gpu_pool_step(struct fl_gpu_pool *pool)
{
    struct fl_gpu_guard g;
    int rc = with_context(pool, &g);

    if (rc == 0) {
        rc = step(pool);
        fl_planned_leave(pool->plan);
        fl_pool_leave(pool, &g);
    }
    return rc;
}
