#include "prop/ops.h"

#include "region/internal.h"
#include "unit/fake_sys.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

enum { SLOTS = 48 };

const struct ops_config ops_configs[] = {
    {"plain", 0, 0, true, false, false},
    {"lazy from 20 MiB", MIB(20), 0, true, false, false},
    {"limit of 24 MiB", 0, MIB(24), true, false, false},
    {"base pages, touched", MIB(18), MIB(64), false, true, false},
    {"reserved window", MIB(24), 0, true, false, true},
};
const size_t ops_nconfigs = sizeof ops_configs / sizeof ops_configs[0];

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

/* Sizes from a page to 32 MiB, small ones most often, page multiples as alloc/ rounds them. */
static size_t size_of(uint16_t v)
{
    size_t pages = 1 + (v >> 4) % 64;

    return pages << (12 + ((v & 15) < 12 ? (v & 3) : 4 + (v & 3)));
}

static size_t align_of(uint16_t v)
{
    return (v & 7) != 0 ? KIB(4) : KIB(4) << (v >> 3) % 13;
}

static uint64_t *word(uintptr_t addr)
{
    return (uint64_t *)addr;
}

/* A stamp at both ends of each page; of a lazy extent every eighth huge page is left out, so some stay sparse. */
static void stamp(struct slot *s, uintptr_t from)
{
    for (uintptr_t p = s->base + (from & ~(uintptr_t)4095); p < s->base + s->len; p += 4096) {
        if (!s->lazy || s->stamp % 2 != 0 || (p >> 21) % 8 != 0) {
            *word(p) = s->stamp ^ p;
            *word(p + 4096 - sizeof(uint64_t)) = s->stamp + p;
        }
    }
}

static bool has_stamp(const struct slot *s, size_t len)
{
    for (uintptr_t p = s->base; p < s->base + len; p += 4096) {
        if ((!s->lazy || s->stamp % 2 != 0 || (p >> 21) % 8 != 0) &&
            (*word(p) != (s->stamp ^ p) || *word(p + 4096 - sizeof(uint64_t)) != s->stamp + p)) {
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

static const char *take(const struct op *op)
{
    struct slot *s = spare_slot();
    size_t len = size_of(op->a), align = align_of(op->b);
    bool zero = op->kind == OP_CALLOC;

    if (s == NULL) {
        return NULL;
    }
    struct fl_extent *e = align == KIB(4) ? fl_cache_take(&region, cache, len) : NULL;
    bool cached = e != NULL;
    if (e == NULL) {
        e = fl_region_take(&region, cache, len, align, zero);
    }
    if (e == NULL) {
        return NULL; /* refused: an answer */
    }
    *s = (struct slot){e, e->base, e->len, ++stamps * 0x9e3779b97f4a7c15,
                       e->content == FL_CONTENT_LAZY};
    if (e->len < len || (e->len > len && !s->lazy)) {
        return "an extent of another length than asked for";
    }
    if (e->base % align != 0 || e->state != FL_EXTENT_LIVE ||
        fl_region_find(&region, e->base) != e) {
        return "an extent that is misaligned, not live or not found";
    }
    for (size_t i = 0; i < SLOTS; i++) {
        const struct slot *o = &slots[i];
        if (o != s && o->e != NULL && o->base < s->base + s->len && s->base < o->base + o->len) {
            return "two live extents share bytes";
        }
    }
    if (zero && cached) {
        memset((void *)e->base, 0, e->len);
    }
    if (zero && !is_zero(s)) {
        return "calloc's memory is not zero";
    }
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
    if (e->base != s->base || e->len != s->len) {
        return "a live extent changed";
    }
    if (!has_stamp(s, s->len)) {
        return "a live extent's bytes changed";
    }
    s->e = NULL;
    if (!fl_extent_claim(e, region.epoch)) {
        return "a live extent could not be claimed";
    }
    if (fl_extent_claim(e, region.epoch) || fl_region_find(&region, s->base) != NULL) {
        return "a freed extent could be freed again";
    }
    if (op->kind == OP_DEFER) {
        fl_region_lock(&region);
        fl_region_defer(&region, e);
        fl_region_unlock(&region);
        return NULL;
    }
    if (op->kind == OP_FREE && e->content != FL_CONTENT_LAZY && e->len <= region.cache_max) {
        e = fl_cache_put(cache, e);
    }
    if (e != NULL) {
        fl_region_give(&region, e);
    }
    return NULL;
}

static const char *resize(const struct op *op)
{
    struct slot *s = live_slot(op->a);
    size_t len = size_of(op->b);

    if (s == NULL) {
        return NULL;
    }
    size_t old = s->len;
    bool done = fl_region_resize(&region, s->e, len);
    if (s->e->base != s->base || (!done && s->e->len != old) ||
        (done && s->e->len != len && !s->lazy)) {
        return "resize moved the extent, or has another length than it says";
    }
    if (!done && len < old && !s->lazy) {
        return "shrinking failed";
    }
    s->len = s->e->len;
    if (!has_stamp(s, fl_min(old, s->len))) {
        return "resize changed bytes";
    }
    if (s->len > old) {
        stamp(s, old);
    }
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

    fake_file("/proc/meminfo", left[op->a % 3]);
    fake.limit_as = op->b % 4 == 0 ? MIB(128) : UINT64_MAX;
    region.since_look = region.look_after;
    region.budget = 0;
}

/* The kernel takes at once what it may. */
static void take_away(struct fl_range r)
{
    (void)madvise((void *)r.base, r.len, MADV_DONTNEED);
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
        return NULL;
    case OP_TICK:
        (void)fl_region_tick(&region, 4);
        return NULL;
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
    case OP_KINDS:
        break;
    }
    return NULL;
}

/* What the model says the statistics must be. */
static const char *check_figures(void)
{
    struct fl_stats_values v = {.active = 1};
    uint64_t live = 0, in_use = 0, lazy = 0, usable = 0;

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
    if (v.live_extents != live || v.requests - v.frees != live || v.in_use_bytes != in_use) {
        return "statistics do not add up";
    }
    for (size_t i = 0; i < fake.nmap; i++) {
        struct fl_range r = fake.map[i].range;
        bool ours = r.base >= region.window.all.base && r.base < fl_range_end(region.window.all);
        usable += ours && fake.map[i].usable ? r.len : 0;
    }
    uint64_t boot = 0;
    for (size_t i = 0; i < fake.nmap; i++) { /* the boot area, which is no extent */
        struct fl_range r = fake.map[i].range;
        if (r.base == region.window.all.base && fake.map[i].usable) {
            boot = fl_min(r.len, region.first - r.base);
        }
    }
    if (usable - boot != v.populated_bytes + lazy) {
        return "what is mapped is not what is held";
    }
    return NULL;
}

const char *ops_play(const struct ops_config *c, const struct op *ops, size_t n, size_t *out_at)
{
    struct fl_region_config config = {.eager_max = c->eager_max,
                                      .limit = c->limit,
                                      .huge = c->huge,
                                      .populate_by_touch = c->by_touch};

    fake_install();
    fake.no_quiet_addresses |= c->reserved;
    fake.on_lazy_free = take_away;
    fake.pretend_populate = true; /* what is never touched costs nothing */
    memset(&region, 0, sizeof region);
    memset(slots, 0, sizeof slots);
    stamps = 0;
    *out_at = 0;
    if (fl_region_start(&region, &config) != 0 || (cache = fl_cache_acquire(&region)) == NULL) {
        return "the region did not start";
    }
    for (size_t i = 0; i < n; i++) {
        *out_at = i;
        const char *wrong = apply(&ops[i]);
        if (wrong == NULL && (wrong = fl_region_check(&region)) == NULL) {
            wrong = check_figures();
        }
        if (wrong != NULL) {
            return wrong;
        }
    }
    for (size_t i = 0; i < SLOTS; i++) {
        const char *wrong = let_go(&(struct op){OP_FREE, (uint16_t)i, 0});
        if (wrong != NULL) {
            return wrong;
        }
    }
    (void)fl_region_purge(&region, 0);
    const char *wrong = fl_region_check(&region);
    return wrong != NULL ? wrong : check_figures();
}

void ops_print(const struct op *ops, size_t n)
{
    static const char *const name[OP_KINDS] = {
        "take",      "calloc", "free", "free past the cache", "defer", "resize", "purge", "tick",
        "new cache", "refuse", "press"};

    for (size_t i = 0; i < n; i++) {
        fprintf(stderr, "  {%u, %u, %u}, /* %s", ops[i].kind, ops[i].a, ops[i].b,
                name[ops[i].kind]);
        if (ops[i].kind <= OP_CALLOC) {
            fprintf(stderr, " %zu at %zu", size_of(ops[i].a), align_of(ops[i].b));
        } else if (ops[i].kind == OP_RESIZE) {
            fprintf(stderr, " to %zu", size_of(ops[i].b));
        }
        fprintf(stderr, " */\n");
    }
}
