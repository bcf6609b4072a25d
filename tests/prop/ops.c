#include "prop/ops.h"

#include "prop/advised.h"
#include "prop/must.h"
#include "region/state/lock.h"
#include "region/region.h"
#include "unit/fake_sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

enum { SLOTS = 48 };

struct slot {
    struct fl_extent *e;
    uintptr_t base; /* as handed out: e must still say so */
    size_t len;
    uint64_t stamp;
    bool lazy;
};

static struct fl_region region;
static struct fl_cache *cache;
static struct slot slots[SLOTS];
static uint64_t stamps;

static uint64_t *word(uintptr_t addr)
{
    return (uint64_t *)addr;
}

/* A stamp at both ends of each page; of a lazy extent every eighth huge page is left out, so some
 * stay sparse. */
static bool is_stamped(const struct slot *s, size_t at)
{
    return !s->lazy || s->stamp % 2 != 0 || (at >> 21) % 8 != 0;
}

static void stamp(struct slot *s, size_t from)
{
    for (size_t at = from & ~(size_t)4095; at < s->len; at += 4096) {
        if (is_stamped(s, at)) {
            *word(s->base + at) = s->stamp ^ at;
            *word(s->base + at + 4096 - sizeof(uint64_t)) = s->stamp + at;
        }
    }
}

static bool has_stamp(const struct slot *s, size_t len)
{
    for (size_t at = 0; at < len; at += 4096) {
        if (is_stamped(s, at) && (*word(s->base + at) != (s->stamp ^ at) ||
                                  *word(s->base + at + 4096 - sizeof(uint64_t)) != s->stamp + at)) {
            return false;
        }
    }
    return true;
}

static bool is_zero(const struct slot *s)
{
    const char *p = (const char *)s->base;

    return p[0] == 0 && memcmp(p, p + 1, s->len - 1) == 0;
}

static struct slot *live_slot(uint16_t which)
{
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &slots[(which + i) % SLOTS];
        if (s->e != NULL) {
            return s;
        }
    }
    return NULL;
}

static struct slot *spare_slot(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].e == NULL) {
            return &slots[i];
        }
    }
    return NULL;
}

static bool overlaps(const struct slot *s)
{
    for (size_t i = 0; i < SLOTS; i++) {
        const struct slot *o = &slots[i];
        if (o != s && o->e != NULL && o->base < s->base + s->len && s->base < o->base + o->len) {
            return true;
        }
    }
    return false;
}

static const char *take(const struct op *op)
{
    struct slot *s = spare_slot();
    size_t len = ops_size(op->a), align = ops_align(op->b);
    bool zero = op->kind == OP_CALLOC;

    if (s == NULL) {
        return NULL;
    }
    struct fl_extent *e = align == fl_page.base ? fl_cache_take(&region, cache, len) : NULL;
    bool cached = e != NULL;
    if (e == NULL) {
        e = fl_region_take(&region, cache, len, align, zero);
    }
    if (e == NULL) {
        return NULL; /* refused: an answer */
    }
    *s = (struct slot){e, e->base, e->len, ++stamps * 0x9e3779b97f4a7c15,
                       e->content == FL_CONTENT_LAZY};
    MUST(e->len == len || (e->len > len && s->lazy), "an extent of another length than asked for");
    MUST(e->base % align == 0 && e->state == FL_EXTENT_LIVE &&
             fl_region_find(&region, e->base) == e,
         "an extent that is misaligned, not live or not found");
    MUST(!overlaps(s), "two live extents share bytes");
    if (zero && cached) {
        memset((void *)e->base, 0, e->len);
    }
    MUST(!zero || is_zero(s), "calloc's memory is not zero");
    stamp(s, 0);
    return NULL;
}

static const char *let_go(const struct op *op)
{
    struct slot *s = live_slot(op->a);

    if (s == NULL) {
        return NULL;
    }
    struct fl_extent *e = s->e;
    MUST(e->base == s->base && e->len == s->len, "a live extent changed");
    MUST(has_stamp(s, s->len), "a live extent's bytes changed");
    s->e = NULL;
    MUST(fl_extent_claim(e, region.epoch), "a live extent could not be claimed");
    MUST(!fl_extent_claim(e, region.epoch) && fl_region_find(&region, s->base) == NULL,
         "a freed extent could be freed again");
    if (op->kind == OP_DEFER) {
        fl_region_lock(&region);
        fl_region_defer(&region, e);
        fl_region_unlock(&region);
        return NULL;
    }
    if (op->kind == OP_FREE && e->content != FL_CONTENT_LAZY && e->len <= region.cache_max) {
        e = fl_cache_put(&region, cache, e);
    }
    if (e != NULL) {
        fl_region_give(&region, e);
    }
    return NULL;
}

static const char *resize(const struct op *op)
{
    struct slot *s = live_slot(op->a);
    size_t len = ops_size(op->b);

    if (s == NULL) {
        return NULL;
    }
    size_t old = s->len;
    bool done = fl_region_resize(&region, s->e, len);
    MUST(s->e->base == s->base && (s->e->len == (done ? len : old) || (done && s->lazy)),
         "resize moved the extent, or has another length than it says");
    MUST(done || len >= old || s->lazy, "shrinking failed");
    s->len = s->e->len;
    MUST(has_stamp(s, fl_min(old, s->len)), "resize changed bytes");
    if (s->len > old) {
        stamp(s, old);
    }
    return NULL;
}

static const char *move(const struct op *op)
{
    struct slot *s = live_slot(op->a);

    if (s == NULL) {
        return NULL;
    }
    size_t old_len = s->len, len = old_len + ops_size(op->b);
    uintptr_t old = s->base;
    struct fl_extent *to = fl_region_move(&region, s->e, len);
    if (to == NULL) {
        return s->e->base == old && s->e->len == old_len && s->e->state == FL_EXTENT_LIVE &&
                       has_stamp(s, old_len)
                   ? NULL
                   : "a refused move changed something";
    }
    s->e = to;
    s->base = to->base;
    s->len = to->len;
    MUST((to->len == len || (to->len > len && s->lazy)) && to->state == FL_EXTENT_LIVE &&
             s->lazy == (to->content == FL_CONTENT_LAZY) && fl_region_find(&region, to->base) == to,
         "a moved extent is not what was asked for");
    MUST(fl_region_find(&region, old) == NULL && !overlaps(s),
         "a moved extent is where it was, or where others are");
    MUST(has_stamp(s, old_len), "a move changed bytes");
    stamp(s, old_len);
    return NULL;
}

/* Plenty is left, half of the machine is used, or next to nothing is left. The next free looks. */
static void press(const struct op *op)
{
    static const char *const left[] = {
        "MemTotal: 16777216 kB\nMemAvailable: 14680064 kB\n",
        "MemTotal: 16777216 kB\nMemAvailable: 8396800 kB\n",
        "MemTotal: 16777216 kB\nMemAvailable: 65536 kB\n",
    };

    fake_file("/proc/meminfo", left[op->a % 6 < 4 ? 0 : op->a % 6 - 3]);
    fake.limit_as = op->b % 4 == 0 ? MIB(128) : UINT64_MAX;
    region.pressure.since_look = region.pressure.look_after;
    region.budget.left = 0;
}

/* The kernel takes at once what it may. */
static void take_away(struct fl_range r)
{
    (void)madvise((void *)r.base, r.len, MADV_DONTNEED);
}

static uint64_t dice;

/* Each call of the kernel's another answer; so much may move before it. */
static int answer_at_random(struct fl_range from, uintptr_t to, size_t *most)
{
    static const int answers[] = {0, 0, -EBUSY, -EAGAIN, -EEXIST, -EINVAL, -ENOMEM, -EFAULT};

    (void)to;
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    if ((dice >> 40) % 2 == 0) {
        *most = fl_min(from.len, (dice >> 20) % (from.len >> fl_page.shift) << fl_page.shift);
    }
    return answers[(dice >> 33) % 8];
}

static void answer(const struct op *op)
{
    fake.on_move = op->a % 8 < 3 ? answer_at_random : NULL;
    fake.rc[FAKE_MOVE] = op->a % 8 == 3 ? -EBUSY : 0;
    fake.rc[FAKE_MOVE_BEGIN] = op->a % 8 == 4 ? (op->a % 512 == 4 ? -EPERM : -EMFILE) : 0;
    fake.move_most = op->b % 4 == 0 ? fl_align_up(KIB(4) * (1 + op->b % 700), fl_page.base) : 0;
    fake.fail_at = 0;
    if (op->b % 8 == 1) { /* one of the next advices, which may be about fork */
        fake_fail_at(1 + op->b / 8 % 8, 1u << FAKE_ADVISE);
    }
}

/* What it fills is touched, so that there is something to move. */
static const char *refill(const struct op *op)
{
    region.refill.demand += (size_t)(op->a % 16) << 21;
    while (fl_region_refill(&region) == 0) {
    }
    for (unsigned i = 0; i < FL_RESERVE_CHUNKS; i++) {
        const struct fl_reserve_chunk *c = &region.pages.reserve.chunk[i];
        uintptr_t base = region.pages.reserve.span.all.base + i * region.pages.reserve.chunk_len;
        for (size_t at = 0; at < c->ready; at += 4096) {
            MUST(*word(base + at) == 0, "the stock is not zero");
            *word(base + at) = 0;
        }
        MUST(c->held >= c->ready && c->moving == 0 && !c->isolated, "the stock does not add up");
    }
    return NULL;
}

static void clear(void)
{
    for (int i = 0; i < 2; i++) { /* the first look finds that requests came */
        region.rezero.credit = MIB(32);
        (void)fl_region_rezero(&region);
    }
}

static void repair(const struct op *op)
{
    fake.npages = 0;
    for (uint16_t i = 0; i < op->b % 8; i++) {
        uintptr_t at = region.space.first + ((op->a + i * 3u) % 64 << 21);
        size_t own = fl_align_down((size_t)(op->b >> 4) % 513 << 12, fl_page.base);
        fake.page[fake.npages++] = (struct fake_page){at, MIB(2), own, i % 3 == 0, 0};
    }
    fake.now_ns += op->a % 2 == 0 ? 6000000000 : 0;
    for (int i = 0; i < 100 && fl_region_repair(&region) == 0; i++) {
    }
}

static const char *check(void);

/* What is live is there, what is free can be used. */
static int child(void)
{
    fl_region_fork_child(&region, cache);
    if (check() != NULL) {
        return 1;
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].e != NULL && !has_stamp(&slots[i], slots[i].len)) {
            return 2;
        }
    }
    for (uint16_t i = 0; i < 6; i++) {
        uint16_t v = (uint16_t)(stamps * 7919 + i * 4099u);
        if (take(&(struct op){i % 2 == 0 ? OP_TAKE : OP_CALLOC, v, v}) != NULL ||
            let_go(&(struct op){OP_FREE, v, 0}) != NULL) {
            return 3;
        }
    }
    (void)fl_region_purge(&region, 0);
    return check() != NULL ? 4 : 0;
}

static const char *fork_off(const struct op *op)
{
    static const char *const wrong[] = {NULL, "a child's region is unsound",
                                        "a child's bytes changed", "a child's requests went wrong",
                                        "a child's region became unsound"};

    fl_region_fork_lock(&region);
    int status = op->a % 4 == 0 ? fake_child(child) : 0;
    fl_region_fork_parent(&region);
    return status >= 0 && status <= 4 ? wrong[status] : "a child died";
}

static const char *apply(const struct op *op)
{
    switch ((enum op_kind)op->kind) {
    case OP_TAKE:
    case OP_CALLOC:
        return take(op);
    case OP_FREE:
    case OP_FREE_PAST:
    case OP_DEFER:
        return let_go(op);
    case OP_RESIZE:
        return resize(op);
    case OP_PURGE:
        (void)fl_region_purge(&region, op->a % 6);
        return holes_check(&region);
    case OP_TICK:
        (void)fl_region_tick(&region, 4);
        return holes_check(&region);
    case OP_CACHE:
        fl_cache_release(&region, cache);
        cache = fl_cache_acquire(&region);
        return cache == NULL ? "no cache" : NULL;
    case OP_REFUSE:
        fake.commit_max = op->a % 3 == 0 ? op->a % 16 * KIB(512) : SIZE_MAX;
        return NULL;
    case OP_PRESS:
        press(op);
        return NULL;
    case OP_MOVE:
        return move(op);
    case OP_ANSWER:
        answer(op);
        return NULL;
    case OP_FORGET:
        region.stats.in_use_peak = region.stats.in_use;
        return NULL;
    case OP_REFILL:
        return refill(op);
    case OP_CLEAR:
        clear();
        return NULL;
    case OP_REPAIR:
        repair(op);
        return NULL;
    case OP_FORK:
        return fork_off(op);
    case OP_HIDE:
        advised_hide(&region, op);
        return NULL;
    case OP_KINDS:
        break;
    }
    return NULL;
}

/* The invariants, and what the model says the statistics must be. */
static const char *check(void)
{
    const char *broken = fl_region_check(&region);
    struct fl_stats_values v = {.active = 1};
    uint64_t live = 0, in_use = 0, lazy = 0, usable = 0;
    /* without the first huge page, which no extent has */
    struct fl_range all = {region.space.first,
                           fl_range_end(region.space.window.all) - region.space.first};

    MUST(broken == NULL, broken);
    fl_region_stats_read(&region, &v);
    for (size_t i = 0; i < SLOTS; i++) {
        live += slots[i].e != NULL;
        in_use += slots[i].e != NULL ? slots[i].len : 0;
        lazy += slots[i].e != NULL && slots[i].lazy ? slots[i].len : 0;
    }
    for (const struct fl_cache_slot *s = cache->slot; s < cache->slot + FL_CACHE_SLOTS; s++) {
        const struct fl_extent *e = s->extent;
        in_use += e != NULL ? e->len : 0;
    }
    MUST(v.live_extents == live && v.requests - v.frees == live && v.in_use_bytes == in_use,
         "statistics do not add up");
    for (size_t i = 0; i < fake.nmap; i++) {
        struct fl_range r = fl_range_common(fake.map[i].range, all);
        usable += fake.map[i].usable ? r.len : 0;
    }
    MUST(usable == v.populated_bytes + fl_holes_in(&region.pages.holes, all) -
                       region.pages.reserve.held + lazy,
         "what is mapped is not what is held");
    MUST(region.held.moving == 0 && TAILQ_EMPTY(&region.isolated) && fake.moves_open == 0 &&
             !fl_region_busy(),
         "something is under way still");
    return advised_check(&region);
}

const char *ops_play(const struct ops_config *c, const struct op *ops, size_t n, size_t *out_at)
{
    struct fl_region_config config = {.eager_max = c->eager_max,
                                      .limit = c->limit,
                                      .stock = c->stock,
                                      .method = (enum fl_move_method)c->method,
                                      .huge = c->huge,
                                      .populate_by_touch = c->by_touch,
                                      .wait_for_touch = c->wait_for_touch};

    fake_install();
    fake.no_quiet_addresses |= c->reserved;
    fake.on_lazy_free = take_away;
    fake.grants_no_huge = true;
    fake.pretend_populate = true; /* what is never touched costs nothing */
    memset(&region, 0, sizeof region);
    memset(slots, 0, sizeof slots);
    stamps = dice = 0;
    *out_at = 0;
    MUST(fl_region_start(&region, &config) == 0 && (cache = fl_cache_acquire(&region)) != NULL,
         "the region did not start");
    for (size_t i = 0; i < n; i++) {
        *out_at = i;
        const char *wrong = apply(&ops[i]);
        wrong = wrong != NULL ? wrong : check();
        MUST(wrong == NULL, wrong);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        const char *wrong = let_go(&(struct op){OP_FREE, (uint16_t)i, 0});
        MUST(wrong == NULL, wrong);
    }
    (void)fl_region_purge(&region, 0);
    return check();
}
