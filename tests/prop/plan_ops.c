#include "prop/plan_ops.h"

#include "prop/plan_model.h"
#include "prop/seed.h"

#include <errno.h>

enum { HOLDS = 4, CHECK_EVERY = 500 };

const struct plan_ops_config plan_ops_configs[PLAN_CONFIGS] = {
    {"worker", true, true, false},
    {"at once, refusals", false, true, true},
    {"worker, nothing moves", true, false, false},
    {"worker, refusals", true, true, true},
};

static bool refuses;
static unsigned refused;                                 /* for so many operations */
static _Thread_local struct fl_plan_layout holds[HOLDS]; /* opening 0: none */

/* ---- the arenas ---- */

static const char *look(struct model_loop *l, bool hold)
{
    struct fl_plan_layout got;
    int rc = hold ? fl_plan_hold(l->context, &got) : fl_plan_layout(l->context, &got, NULL, 0);

    if (rc != 0) {
        return NULL;
    }
    MUST(got.height <= got.limit && got.base % fl_page.huge == 0, "a layout without room");
    for (const struct fl_plan_zone *z = got.zone; z <= got.zone + FL_PLAN_ZONES; z++) {
        uint64_t even = z->offset[0], odd = z->offset[1];
        MUST(z->len == 0 || even + z->len <= odd || odd + z->len <= even,
             "a zone's places in even and odd steps share bytes");
        MUST(fl_max(even, odd) + z->len <= got.height, "a zone beyond the layout");
    }
    for (unsigned i = 0; hold && i < HOLDS; i++) {
        if (holds[i].opening == 0) {
            holds[i] = got;
            return NULL;
        }
    }
    if (hold) {
        fl_plan_let_go(got.opening);
    }
    return NULL;
}

static void let_go(unsigned i)
{
    if (holds[i].opening != 0) {
        fl_plan_let_go(holds[i].opening);
        holds[i].opening = 0;
    }
}

static void refuse(unsigned what, unsigned n)
{
    fake.commit_max = what == 1 ? 0 : what == 2 ? MIB(2) : SIZE_MAX;
    fake.rc[FAKE_POPULATE] = what == 3 ? -ENOMEM : 0;
    fake.rc[FAKE_MOVE] = what == 4 ? -EBUSY : 0;
    fake_fail_at(what == 5 ? 1 + n % 16 : 0, 0);
    region.config.limit = what >= 6 ? region.held.populated + 1 : 0; /* no more than there is */
    refused = what != 0 ? n : 0;
    model.ever_refused = model.ever_refused || what != 0;
}

static void go_on_refusing(void)
{
    if (refused != 0) {
        model_disturb_all();
        if (--refused == 0) {
            refuse(0, 0);
        }
    }
}

/* ---- what has to be so ---- */

static bool is_known(const struct fl_step_context *c, const struct fl_layout *l)
{
    bool known = false;

    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        known = known || c->serve.known[i] == l;
    }
    return known;
}

static const char *check_context(const struct fl_step_context *c)
{
    const struct fl_layout *l = c->serve.layout;

    MUST((c->state == FL_SERVE) == (l != NULL), "served without a layout, or not with one");
    MUST(l == NULL || is_known(c, l), "the layout that is served is not known");
    MUST(c->serve.last == NULL || is_known(c, c->serve.last), "the last layout is not known");
    MUST(c->state != FL_PACK || c->job.state != FL_JOB_NONE, "it waits for no job");
    MUST(c->state != FL_REST || c->rest.steps != 0, "it rests for ever");
    MUST(!c->inside && fl_plan.lock.word == 0, "something is under way still");
    return NULL;
}

static const char *check_contexts(void)
{
    const char *wrong = NULL;

    for (uint32_t i = 1; i < fl_plan.ncontexts && wrong == NULL; i++) {
        wrong = check_context(fl_plan.context[i]);
    }
    return wrong;
}

/* Granules that its blocks have; *there: all are in memory. */
static size_t granules_of(const struct fl_arena *a, bool *there)
{
    size_t granules = 0;

    for (unsigned i = 0; i < LOOPS * SLOTS; i++) {
        const struct model_block *b = &model.loop[i / SLOTS].block[i % SLOTS];
        if (b->p != NULL && b->inner && b->e->inner == &a->inner) {
            size_t first = ((uintptr_t)b->p - a->base) >> FL_GRANULE_SHIFT;
            granules += b->held >> FL_GRANULE_SHIFT;
            *there = *there && fl_bitmap_are_free(&a->absent, first, b->held >> FL_GRANULE_SHIFT);
        }
    }
    return granules;
}

/* How often it is held; *there: what was is in memory. */
static size_t holds_of(const struct fl_arena *a, bool *there)
{
    size_t n = 0;

    for (const struct fl_plan_layout *h = holds; h < holds + HOLDS; h++) {
        if (h->opening == a->use.opening) {
            n++;
            *there = *there && fl_bitmap_count(&a->absent, h->limit >> FL_GRANULE_SHIFT) == 0;
        }
    }
    return n;
}

/* All that its blocks have, and nothing else, is claimed. */
static const char *check_arena(const struct fl_arena *a)
{
    size_t per_page = fl_page.huge >> FL_GRANULE_SHIFT;
    bool there = true;
    size_t granules = granules_of(a, &there), held = holds_of(a, &there);
    /* Its memory was given back, and the kernel refused to map it again. */
    size_t lost = fl_bitmap_count(&a->claimed, a->claimed.granules) - granules;

    MUST(there, "a live block, or what is held, is not in memory");
    MUST(lost == 0 || (model.ever_refused && lost % per_page == 0),
         "claimed is not what blocks have");
    MUST(a->use.owned || a->draining, "an arena without a context does not drain");
    MUST(a->use.owned || granules + lost + held != 0, "an arena without a context stays open");
    MUST(fl_bitmap_count(&a->absent, a->limit >> FL_GRANULE_SHIFT) == a->missing * per_page,
         "missing is not what is absent");
    MUST(a->use.held == held, "it is held more often than it was asked for, or less");
    return NULL;
}

static const char *check_all(void)
{
    const char *wrong = fl_region_check(&region);
    struct fl_plan_stats s = plan_stats();
    size_t arenas = 0, idle = 0;

    for (struct fl_arena *a = fl_plan.arenas; a != NULL && wrong == NULL; a = a->next) {
        if (fl_arena_is_open(a)) {
            wrong = check_arena(a);
            arenas++;
            idle += a->absent.granules - fl_bitmap_count(&a->absent, a->absent.granules) -
                    fl_bitmap_count(&a->claimed, a->claimed.granules);
        }
    }
    MUST(wrong == NULL, wrong);
    MUST(s.arenas == arenas, "the arenas do not add up");
    MUST(s.free_bytes == idle << FL_GRANULE_SHIFT, "what is idle does not add up");
    MUST(s.live_blocks == model.inner, "the live blocks do not add up");
    MUST(s.hits == model.hits || (model.depth > 1 && s.hits < model.hits),
         "the hits do not add up");
    return NULL;
}

/* ---- all together ---- */

/* One that changes what the loop's steps are. */
static const char *disturb(const struct plan_op *op, struct model_loop *l)
{
    struct model_block *b = model_live_block(l, op->a);

    l->calm = 0;
    switch (op->kind) {
    case PLAN_END:
        return l->inside ? model_end(l) : NULL;
    case PLAN_SCRIPT:
        model_draw_script(l, op->a % SHAPES, op->b);
        return NULL;
    case PLAN_VARY:
        *(op->b % 4 == 0 ? &l->vary_all : &l->vary) = 8 + op->a % 16;
        return NULL;
    case PLAN_OMIT:
        l->omit = true;
        return NULL;
    case PLAN_EXTRA:
        return model_ask(l, KIB(64) + op->a % 512 * KIB(4), op->b % 128, op->b >> 7 & 31);
    case PLAN_RESIZE:
        return b != NULL ? model_resize(l, b, fl_align_up(b->n * (8 + op->b % 20) / 16, 8)) : NULL;
    case PLAN_FREE:
        return b != NULL ? model_drop(l, b) : NULL;
    case PLAN_KEEP:
        if (b != NULL) {
            b->kept = true;
            l->due[b - l->block] = l->clock + 4 * REQUESTS + op->b % 512;
        }
        return NULL;
    default: /* MARK */
        if (b != NULL) {
            (void)fl_plan_mark_zone(b->p, op->b % 6);
        }
        return NULL;
    }
}

const char *plan_ops_apply(const struct plan_op *op)
{
    struct model_loop *l = model_current(), *other = &model.loop[op->a % LOOPS];

    switch (op->kind) {
    case PLAN_NEXT:
        return model_next(l);
    case PLAN_WORK:
        (void)fl_plan_work(&region);
        return NULL;
    case PLAN_PASS:
        fake.now_ns += op->a * UINT64_C(1000000);
        return NULL;
    case PLAN_TICK:
        (void)fl_region_tick(&region, 4);
        return NULL;
    case PLAN_AGE:
        (void)fl_plan_age(&region);
        return NULL;
    case PLAN_LOOK:
    case PLAN_HOLD:
        return look(other, op->kind == PLAN_HOLD);
    case PLAN_NEST:
        return other->inside ? NULL : model_begin(other);
    case PLAN_LOOP:
        model.chosen = other;
        return NULL;
    case PLAN_SHAPE:
        l->next_shape = op->a % SHAPES;
        return NULL;
    case PLAN_LET_GO:
        let_go(op->a % HOLDS);
        return NULL;
    case PLAN_RELEASE:
        (void)fl_plan_release();
        return NULL;
    case PLAN_LEND:
        (void)fl_plan_lend(0, (size_t)op->a << 10);
        return NULL;
    case PLAN_PURGE:
        (void)fl_region_purge(&region, op->a % 4);
        return NULL;
    case PLAN_REFUSE:
        refuse(refuses ? op->a % 9 : 0, op->b % 256);
        return NULL;
    case PLAN_NEW_CONTEXT:
        return model_other_context(other);
    case PLAN_THREAD_END:
        model_end_thread();
        return NULL;
    default:
        return disturb(op, l);
    }
}

const char *plan_ops_all_is_free(void)
{
    for (unsigned i = 0; i < HOLDS; i++) {
        let_go(i);
    }
    (void)fl_plan_release();
    (void)fl_region_purge(&region, 0);
    const char *wrong = fl_region_check(&region);
    struct fl_plan_stats s = plan_stats();
    struct fl_stats_values v = stats();
    MUST(wrong == NULL, wrong);
    MUST((s.arenas == 0 || model.ever_refused) && v.live_extents == s.arenas &&
             v.in_use_bytes == 0 && v.populated_bytes == 0,
         "not all is free again");
    return NULL;
}

static const char *finish(struct fl_plan_stats *out)
{
    refuse(0, 0);
    model_end_thread();
    *out = plan_stats();
    const char *wrong = model_drop_all();
    for (unsigned i = 0; i < LOOPS && wrong == NULL; i++) {
        wrong = model_other_context(&model.loop[i]);
    }
    wrong = wrong != NULL ? wrong : plan_ops_all_is_free();
    return wrong != NULL ? wrong : check_all();
}

static uint64_t clock_now(void)
{
    return atomic_fetch_add(&fake.now_ns, 1000); /* so that a budget of time comes to its end */
}

static void start(const struct plan_ops_config *c)
{
    plan_begin(&(struct fl_plan_config){.on = true, .background = c->background});
    fl_sys.now_ns = clock_now;
    fl_sys.write = fl_sys_linux.write;
    fake.pretend_populate = true;
    fake.rc[FAKE_MOVE_BEGIN] = c->moves ? 0 : -EPERM;
    refuses = c->refuses;
    model_start();
    model_start_thread(0);
}

const char *plan_ops_play(const struct plan_ops_config *c, const struct plan_op *ops, size_t n,
                          _Atomic size_t *at, struct fl_plan_stats *out)
{
    const char *wrong = NULL;

    start(c);
    for (size_t i = 0; i < n && wrong == NULL; i++) {
        *at = i;
        wrong = plan_ops_apply(&ops[i]);
        go_on_refusing();
        wrong = wrong != NULL ? wrong : check_contexts();
        wrong = wrong != NULL || i % CHECK_EVERY != 0 ? wrong : check_all();
    }
    return wrong != NULL ? wrong : finish(out);
}

/* ---- random ones ---- */

#define PLAN_OP_NAME(name, share) #name,
const char *const plan_op_names[PLAN_KINDS] = {PLAN_OPS(PLAN_OP_NAME)};

static enum plan_op_kind draw_kind(uint64_t r)
{
#define PLAN_OP_SHARE(name, share) share,
    static const uint8_t shares[PLAN_KINDS] = {PLAN_OPS(PLAN_OP_SHARE)};
    unsigned all = 0, kind = 0;

    for (unsigned i = 0; i < PLAN_KINDS; i++) {
        all += shares[i];
    }
    for (unsigned left = (unsigned)(r % all); left >= shares[kind]; left -= shares[kind++]) {
    }
    return (enum plan_op_kind)kind;
}

void plan_ops_draw(struct plan_op *ops, size_t n, uint64_t random)
{
    static const unsigned of_1024[] = {0, 0, 4, 16, 60, 400};
    unsigned disorder = 0;

    for (size_t i = 0, until = 0; i < n; i++) {
        uint64_t r = seed_next(&random);
        if (i == until) {
            disorder = of_1024[r % 6];
            until += 100 + (r >> 32) % 2000;
            r = seed_next(&random);
        }
        enum plan_op_kind kind = (r & 1023) < disorder ? draw_kind(r >> 40)
                                 : (r >> 10) % 32 == 0 ? PLAN_WORK
                                                       : PLAN_NEXT;
        ops[i] = (struct plan_op){kind, (uint16_t)(r >> 16), (uint16_t)(r >> 32)};
    }
}
