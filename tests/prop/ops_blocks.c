/* What a program does with blocks, by way of its threads' caches and depots, as alloc/ does it. */
#include "prop/ops_kinds.h"
#include "prop/world.h"
#include "region/state/lock.h"

#include <string.h>

enum { LONGER = 32 }; /* a depot's block may be longer by such a part, than was asked for */

static bool is_served(const struct fl_cache *c)
{
    return !world.config->nodes || fl_cache_is_home(c);
}

static bool is_kept(const struct fl_cache *c, const struct fl_extent *e)
{
    return e->content != FL_CONTENT_LAZY && e->len <= region.cache_max &&
           !fl_extent_is_user_remapped(e) && (!world.config->nodes || fl_cache_takes(c, e));
}

/* Of what waits; calloc looks in the slots alone. NULL: none does. */
static struct fl_extent *take_waiting(struct fl_cache *c, size_t len, bool zero)
{
    struct fl_extent *e = is_served(c) ? fl_cache_take(&region, c, len) : NULL;

    if (e == NULL && !zero && is_served(c)) {
        e = fl_depot_take_same(&region, c, len);
        e = e != NULL ? e : fl_depot_take(&region, c, len);
    }
    return e;
}

static void zero_all(struct fl_extent *e)
{
    if (e->left == 0) {
        memset((void *)e->base, 0, e->len);
    } else {
        fl_region_clear(&region, e);
    }
}

static bool is_zero(const struct block *b)
{
    const char *p = (const char *)b->base;

    return p[0] == 0 && memcmp(p, p + 1, b->len - 1) == 0;
}

static bool is_as_long(const struct block *b, size_t len, bool waited)
{
    size_t more = b->len - len;

    return b->len >= len && (more == 0 || b->lazy || (waited && more <= len / LONGER));
}

static const char *take(struct thread *t, size_t len, size_t align, bool zero)
{
    struct block *b = world_spare();

    if (b == NULL) {
        return NULL;
    }
    struct fl_extent *e = align == fl_page.base ? take_waiting(t->cache, len, zero) : NULL;
    bool waited = e != NULL;
    if (e == NULL) {
        e = fl_region_take(&region, t->cache, len, align, zero);
    } else if (zero) {
        zero_all(e);
    }
    if (e == NULL) {
        return NULL; /* refused: an answer */
    }
    *b = (struct block){e, e->base, e->len, ++world.stamps * 0x9e3779b97f4a7c15,
                        e->content == FL_CONTENT_LAZY};
    MUST(is_as_long(b, len, waited), "a block of another length than asked for");
    MUST(e->base % align == 0 && e->state == FL_EXTENT_LIVE &&
             fl_region_find(&region, e->base) == e,
         "a block that is misaligned, not live or not found");
    MUST(!world_overlaps(b), "two live blocks share bytes");
    MUST(!zero || is_zero(b), "calloc's memory is not zero");
    world_stamp(b, 0);
    return NULL;
}

const char *op_take(const struct op *op)
{
    return take(world_thread(ops_thread(op->a)), ops_size(op->a), ops_align(op->b),
                op->kind == OP_CALLOC);
}

/* Into the slots; what they displace into a depot. Returns what the region is to have; NULL:
 * nothing. */
static struct fl_extent *keep(struct fl_cache *c, struct fl_extent *e)
{
    struct fl_extent *old = fl_cache_put(&region, c, e);

    return old != NULL && is_kept(c, old) && fl_region_keep(&region, c, old) ? NULL : old;
}

static void defer(struct fl_extent *e)
{
    fl_region_lock(&region);
    fl_region_defer(&region, e);
    fl_region_unlock(&region);
}

static const char *give(struct thread *t, struct block *b, enum op_kind how)
{
    struct fl_extent *e = b->e;

    MUST(e->base == b->base && e->len == b->len, "a live block changed");
    MUST(world_has_stamp(b, b->len), "a live block's bytes changed");
    b->e = NULL;
    MUST(fl_extent_claim(e, region.epoch), "a live block could not be claimed");
    MUST(!fl_extent_claim(e, region.epoch) && fl_region_find(&region, b->base) == NULL,
         "a freed block could be freed again");
    if (how == OP_DEFER) {
        defer(e);
        return NULL;
    }
    if ((e->left & FL_LEFT_UNSEEN) != 0) {
        fl_region_note_touched(&region, e);
    }
    e = how == OP_FREE && is_kept(t->cache, e) ? keep(t->cache, e) : e;
    if (e != NULL) {
        fl_region_give(&region, e);
    }
    return NULL;
}

const char *op_let_go(const struct op *op)
{
    struct block *b = world_block(op->a);

    return b != NULL ? give(world_thread(ops_thread(op->a)), b, (enum op_kind)op->kind) : NULL;
}

/* So that the depot is filled ahead, and what is freed may fill it: rows of one length, again and
 * again. */
const char *op_row(const struct op *op)
{
    struct thread *t = world_thread(ops_thread(op->a));
    size_t len = fl_align_up(KIB(16) << op->a % 4, fl_page.base);
    size_t n = 1 + op->b % (2 * WORLD_BLOCKS);
    const char *wrong = NULL;

    for (size_t i = 0; i < n && wrong == NULL; i++) {
        wrong = take(t, len, fl_page.base, false);
        struct block *b = world_spare() == NULL ? world_block((uint16_t)(op->b + 7 * i)) : NULL;
        if (wrong == NULL && b != NULL) {
            wrong = give(t, b, OP_FREE);
        }
    }
    for (size_t i = 0; i < op->b / 128 % WORLD_BLOCKS && wrong == NULL; i++) {
        struct block *b = world_block((uint16_t)i);
        wrong = b != NULL ? give(t, b, OP_FREE) : NULL;
    }
    return wrong;
}

const char *op_resize(const struct op *op)
{
    struct block *b = world_block(op->a);
    size_t len = ops_size(op->b);

    if (b == NULL) {
        return NULL;
    }
    size_t old = b->len;
    bool done = fl_region_resize(&region, b->e, len);
    MUST(b->e->base == b->base && (b->e->len == (done ? len : old) || (done && b->lazy)),
         "resize moved the block, or has another length than it says");
    MUST(done || len >= old || b->lazy, "shrinking failed");
    b->len = b->e->len;
    MUST(world_has_stamp(b, fl_min(old, b->len)), "resize changed bytes");
    MUST(!world_overlaps(b), "a resized block is where others are");
    if (b->len > old) {
        world_stamp(b, old);
    }
    return NULL;
}

const char *op_move(const struct op *op)
{
    struct block *b = world_block(op->a);

    if (b == NULL) {
        return NULL;
    }
    size_t old_len = b->len, len = old_len + ops_size(op->b);
    uintptr_t old = b->base;
    struct fl_extent *to = fl_region_move(&region, b->e, len);
    if (to == NULL) {
        MUST(b->e->base == old && b->e->len == old_len && b->e->state == FL_EXTENT_LIVE &&
                 world_has_stamp(b, old_len),
             "a refused move changed something");
        return NULL;
    }
    b->e = to;
    b->base = to->base;
    b->len = to->len;
    MUST((to->len == len || (to->len > len && b->lazy)) && to->state == FL_EXTENT_LIVE &&
             b->lazy == (to->content == FL_CONTENT_LAZY) && fl_region_find(&region, to->base) == to,
         "a moved block is not what was asked for");
    MUST(fl_region_find(&region, old) == NULL && !world_overlaps(b),
         "a moved block is where it was, or where others are");
    MUST(world_has_stamp(b, old_len), "a move changed bytes");
    world_stamp(b, old_len);
    return NULL;
}
