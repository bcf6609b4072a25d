#include "prop/plan_model.h"

#include "prop/seed.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* A loop whose steps were undisturbed for CALM of them, the last SAME with one layout, is served as
 * planned. */
enum { CALM = 16, SAME = 3, UNPLANNED_MOST = 100 };

#define NEVER UINT32_MAX

_Thread_local struct model model;
static uint16_t *shadow; /* whose each page of the window is */

struct model_loop *model_current(void)
{
    return model.depth != 0 ? model.stack[model.depth - 1] : model.chosen;
}

void model_disturb_all(void)
{
    for (unsigned i = 0; i < LOOPS; i++) {
        model.loop[i].calm = 0;
    }
}

static struct fl_step_context *context_of(const struct model_loop *l)
{
    return l == model.loop ? fl_plan_default : l->context;
}

/* ---- blocks ---- */

static uint64_t *word(const struct model_block *b, unsigned i)
{
    size_t at[] = {0, b->n / 2, b->n - 8};

    return (uint64_t *)(b->p + fl_align_down(at[i], 8));
}

static bool is_stamped(const struct model_block *b, unsigned words)
{
    bool is = true;

    for (unsigned i = 0; i < words; i++) {
        is = is && *word(b, i) == b->stamp + i;
    }
    return is;
}

/* False: some of its pages are not `from`. */
static bool own(const struct model_block *b, uint16_t from, uint16_t to)
{
    uint16_t *s = shadow + (((uintptr_t)b->p - region.space.window.all.base) >> fl_page.shift);
    size_t n = b->held >> fl_page.shift;
    bool was = true;

    for (size_t i = 0; i < n; i++) {
        was = was && s[i] == from;
        s[i] = to;
    }
    return was;
}

/* b->p and b->n are new. */
static const char *adopt(struct model_loop *l, struct model_block *b)
{
    b->e = extent_of(b->p);
    b->inner = b->e != NULL && b->e->content == FL_CONTENT_INNER;
    b->held = 0;
    b->id = (uint16_t)(1 + (model.thread * LOOPS + (size_t)(l - model.loop)) * SLOTS +
                       (size_t)(b - l->block));
    b->stamp = ++model.stamps * 0x9e3779b97f4a7c15;
    MUST(fl_is_ours(b->p) == (b->e != NULL), "a block that is not found");
    if (b->e != NULL) {
        MUST(b->e->base == (uintptr_t)b->p && b->e->len >= b->n, "a block that is no block");
        b->held = b->inner ? fl_align_up(b->e->len, FL_GRANULE) : b->e->len;
        model.inner += b->inner;
        MUST(own(b, 0, b->id), "two live blocks share a page");
    }
    for (unsigned i = 0; i < 3; i++) {
        *word(b, i) = b->stamp + i;
    }
    return NULL;
}

static const char *disown(const struct model_block *b)
{
    model.inner -= b->inner;
    MUST(b->e == NULL || own(b, b->id, 0), "a live block's pages are another's");
    return NULL;
}

const char *model_free(const struct model_block *b)
{
    MUST(is_stamped(b, 3), "a live block's bytes changed");
    const char *wrong = disown(b);
    void (*release)(void *) = b->e != NULL ? fl_free_ours : fl_route.next.free;

    release(b->p);
    return wrong;
}

void model_hand_over(struct model_loop *l, struct model_block *b, struct model_block *to)
{
    *to = *b;
    b->p = NULL;
    l->due[b - l->block] = NEVER;
}

const char *model_drop(struct model_loop *l, struct model_block *b)
{
    struct model_block mine;

    l->calm = b->kept ? 0 : l->calm;
    model_hand_over(l, b, &mine);
    return model_free(&mine);
}

const char *model_drop_all(void)
{
    const char *wrong = NULL;

    for (unsigned i = 0; i < LOOPS; i++) {
        struct model_loop *l = &model.loop[i];
        for (struct model_block *b; wrong == NULL && (b = model_live_block(l, 0)) != NULL;) {
            wrong = model_drop(l, b);
        }
    }
    return wrong;
}

static _Thread_local const struct model_block *copied;

/* realloc copies all or parts: the stamp alone, so that no page is touched for the rest. */
static void *copy_stamp(void *to, const void *from, size_t n)
{
    for (unsigned i = 0; i < 3; i++) {
        size_t at = (uintptr_t)word(copied, i) - (uintptr_t)from; /* wraps around before it */
        if (at < n && n - at >= sizeof(uint64_t)) {
            memcpy((char *)to + at, (const char *)from + at, sizeof(uint64_t));
        }
    }
    return to;
}

const char *model_resize(struct model_loop *l, struct model_block *b, size_t n)
{
    struct model_block old = *b;

    MUST(is_stamped(b, 3), "a live block's bytes changed");
    const char *wrong = disown(b); /* first: another thread may have its pages at once */
    copied = &old;
    unsigned char *p = fl_realloc_any(b->p, n);
    if (p == NULL) {
        model.inner += b->inner;
        (void)own(b, 0, b->id);
        return wrong;
    }
    b->p = p;
    b->n = fl_min(n, old.n);
    MUST(is_stamped(b, n < old.n ? 1 : 3), "realloc lost bytes");
    b->n = n;
    wrong = wrong != NULL ? wrong : adopt(l, b);
    model.hits += p != old.p && b->inner;
    if (p != old.p &&
        n < old.n + old.n / 4) { /* one that may stay is asked for or not, by chance */
        l->calm = 0;
    }
    return wrong;
}

struct model_block *model_live_block(struct model_loop *l, uint16_t which)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (l->block[(which + i) % SLOTS].p != NULL) {
            return &l->block[(which + i) % SLOTS];
        }
    }
    return NULL;
}

static bool is_zero(const struct model_block *b)
{
    return *word(b, 0) == 0 && *word(b, 1) == 0 && *word(b, 2) == 0;
}

const char *model_ask(struct model_loop *l, size_t n, unsigned how, unsigned lives)
{
    struct model_block *b = l->block;
    size_t first = how % 16 == 0 ? n / 2 : how % 16 == 1 ? n - n / 8 : n;

    while (b < l->block + SLOTS && b->p != NULL) {
        b++;
    }
    if (b == l->block + SLOTS) {
        return NULL;
    }
    b->n = first;
    b->kept = false;
    b->p = how % 16 == 2   ? fl_calloc_large(first)
           : how % 16 == 3 ? fl_memalign_large(fl_page.base << how / 16 % 6, first)
                           : fl_malloc_large(first);
    if (b->p == NULL) {
        return NULL; /* an answer */
    }
    MUST(how % 16 != 3 || (uintptr_t)b->p % (fl_page.base << how / 16 % 6) == 0, "misaligned");
    MUST(how % 16 != 2 || is_zero(b), "calloc's memory is not zero");
    const char *wrong = adopt(l, b);
    model.hits += b->inner;
    l->due[b - l->block] = l->clock + lives;
    return wrong == NULL && first != n ? model_resize(l, b, n) : wrong;
}

/* ---- the loop ---- */

void model_draw_script(struct model_loop *l, unsigned shape, uint64_t random)
{
    bool varies = l->varies[shape] = seed_next(&random) % 4 == 0;
    unsigned n = l->n[shape] = 3 + (unsigned)(seed_next(&random) % (REQUESTS - 3));

    for (unsigned i = 0; i < n; i++) {
        uint64_t r = seed_next(&random);
        size_t from = r % 64 == 0 ? MIB(4) : KIB(64) << (r >> 8) % 4;
        unsigned lives = 1 + (unsigned)(r >> 16) % 8;
        l->script[shape][i] = (struct request){
            .n = fl_align_up(from + (r >> 24) % from, 8),
            .how = (r >> 48) % 4 == 0 ? (unsigned)(r >> 50) : 15,
            .lives = (r >> 20) % 8 == 0 ? n - 2 + (unsigned)(r >> 60)
                     : lives < n - i    ? lives
                                        : n - i,
            .varies = varies && (r >> 44) % 3 == 0,
        };
    }
}

/* Of a layout in which no size varies. */
static uint32_t serial_of(const struct model_loop *l)
{
    const struct fl_layout *now = context_of(l)->serve.layout;
    bool varies = false;

    for (uint32_t i = 0; now != NULL && i < now->n; i++) {
        varies = varies || now->slot[i].least != now->slot[i].most;
    }
    return now != NULL && !varies ? now->serial : 0;
}

static void note_layout(struct model_loop *l)
{
    uint32_t serial = serial_of(l);

    l->same = l->served == serial ? l->same + 1 : 0;
    l->learned_calm = l->same != 0 ? l->learned_calm : l->calm > CALM / 2;
    l->served = serial;
}

const char *model_begin(struct model_loop *l)
{
    if (l != model.loop && l->context == NULL && fl_plan_context_new(&l->context) != 0) {
        return NULL; /* it is tried again */
    }
    int rc = fl_plan_begin(l->context);
    MUST(rc == 0 || rc == -ENOMEM || (rc == -EBUSY && l->shared), "a step cannot begin");
    if (rc != 0) {
        return NULL;
    }
    MUST(fl_plan_begin(l->context) == -EINVAL, "a step begins within itself");
    model.stack[model.depth++] = l;
    l->calm = l->shape == l->next_shape && !l->varies[l->shape] ? l->calm + 1 : 0;
    l->shape = l->next_shape;
    l->inside = true;
    l->at = l->vary = l->vary_all = 0;
    l->omit = false;
    l->steps++;
    note_layout(l);
    return NULL;
}

/* The step repeated those before it, and no block stays for longer: was all where it should be? A
 * plan that was learned of a disturbed step may be off by a place, and serve on: of some 600 steps
 * of a program that is so in a few dozen, once in 10^7 operations. */
static const char *judge(const struct model_loop *l)
{
    const struct fl_step_context *c = context_of(l);
    bool same = l->served != 0 && l->served == serial_of(l) && l->same >= SAME;
    unsigned excused = l->learned_calm ? 0 : c->serve.step.displaced;

    if (l->calm < CALM || !same || model.ever_refused || c->serve.step.mismatched == excused ||
        !fl_arena_is_open(c->serve.arena)) { /* it went when nothing was in it */
        return NULL;
    }
    if (c->serve.layout->n != c->serve.step.requests ||
        c->serve.step.mismatched - c->serve.step.displaced > c->serve.step.requests / 2) {
        return NULL; /* the layout is another script's */
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        if (l->block[i].p != NULL && l->block[i].kept) {
            return NULL;
        }
    }
    return ++model.unplanned > UNPLANNED_MOST ? "steps that repeat are not served as planned"
                                              : NULL;
}

const char *model_end(struct model_loop *l)
{
    const char *wrong = judge(l);

    l->inside = false;
    model.depth--;
    MUST(fl_plan_end(l->context) == 0, "a step cannot end");
    return wrong;
}

static size_t size_now(const struct model_loop *l, const struct request *r)
{
    unsigned vary = l->vary != 0 ? l->vary : l->vary_all;
    size_t n = r->n;

    if (vary == 0 && r->varies) {
        vary = 12 + (l->steps * 7 + (unsigned)n) % 5;
    }
    return fl_align_up(fl_max(vary != 0 ? n * vary / 16 : n, KIB(64)), 8);
}

const char *model_next(struct model_loop *l)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (l->due[i] <= l->clock) {
            return model_drop(l, &l->block[i]);
        }
    }
    if (!l->inside) {
        return model_begin(l);
    }
    if (l->at >= l->n[l->shape]) {
        return model_end(l);
    }
    const struct request *r = &l->script[l->shape][l->at];
    const char *wrong = l->omit ? NULL : model_ask(l, size_now(l, r), r->how, r->lives);
    l->at++;
    l->clock++;
    l->vary = 0;
    l->omit = false;
    return wrong;
}

const char *model_other_context(struct model_loop *l)
{
    if (l == model.loop || l->context == NULL || l->shared) {
        return NULL;
    }
    int rc = fl_plan_context_free(l->context);
    MUST(rc == (l->inside ? -EBUSY : 0), "a context is freed when it is not to be, or is not");
    l->context = rc == 0 ? NULL : l->context;
    l->calm = 0;
    return NULL;
}

void model_end_thread(void)
{
    thread_end();
    while (model.depth != 0) {
        model.stack[--model.depth]->inside = false;
    }
    model_disturb_all();
}

void model_start(void)
{
    fl_libc.memcpy = copy_stamp;
    /* What is not touched is not there, so few pages move. */
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    shadow = mmap(NULL, (region.space.window.all.len >> fl_page.shift) * sizeof *shadow,
                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void model_start_thread(unsigned thread)
{
    model.thread = (uint16_t)thread;
    model.stamps = (uint64_t)thread << 40;
    model.chosen = model.loop;
    for (unsigned i = 0; i < LOOPS; i++) {
        memset(model.loop[i].due, 0xff, sizeof model.loop[i].due);
        for (unsigned k = 0; k < SHAPES; k++) {
            model_draw_script(&model.loop[i], k, (thread * LOOPS + i) * SHAPES + k);
        }
    }
}
