/* Blocks of a step that lie together, by zone, and the layout for those who copy it: where each
 * request's block lies, and memory that stays there.
 *
 * A mark is for the next layout: in a step that is recorded it is noted beside the life, in
 * one that is served with the slot, which then has the layout made anew. */
#include "plan/context.h"

#include <errno.h>
#include <string.h>

/* ---- marks ---- */

/* The block there that is not free; NULL. */
static struct fl_extent *block_at(uintptr_t addr)
{
    struct fl_extent *outer, *e = fl_region_find(fl_plan.region, addr);

    if (e == NULL) {
        struct fl_inner *in = fl_inner_around(&fl_plan.region->space, addr, &outer);
        e = in != NULL ? fl_inner_block(in, outer, addr) : NULL;
    }
    return e;
}

/* The last request of the step that was served there; NULL: none was. */
static const struct fl_plan_entry *entry_at(const struct fl_step_context *c, size_t granule)
{
    for (const struct fl_plan_entry *s = c->serve.cursor.next; s > c->serve.layout->entry;) {
        s--;
        if (s->granule[c->serve.cursor.parity] == granule) {
            return s;
        }
    }
    return NULL;
}

static int mark_entry(struct fl_step_context *c, size_t granule, uint32_t zone)
{
    const struct fl_plan_entry *s = c->serve.layout != NULL ? entry_at(c, granule) : NULL;
    struct fl_slot *slot = s != NULL ? &c->serve.layout->slot[s - c->serve.layout->entry] : NULL;

    if (slot == NULL || !fl_slot_is_planned(slot)) {
        return -ENOENT;
    }
    if (slot->zone != zone) {
        slot->zone = zone;
        c->serve.layout->marked = true;
    }
    return 0;
}

static int mark_planned(const struct fl_extent *e, uint32_t zone)
{
    struct fl_step_context *c = fl_plan_mine; /* or one that it is within */

    while (c != NULL && (c->serve.arena == NULL || &c->serve.arena->inner != e->inner)) {
        c = c->who.outer;
    }
    if (c == NULL || fl_region_busy() ||
        atomic_exchange_explicit(&c->inside, true, memory_order_relaxed)) {
        return -EBUSY;
    }
    atomic_signal_fence(memory_order_seq_cst);
    int rc = mark_entry(c, (size_t)(e - e->inner->block), zone);
    atomic_store(&c->who.asked, true);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&c->inside, false, memory_order_relaxed);
    return rc;
}

int fl_plan_mark_zone(const void *p, uint32_t zone)
{
    struct fl_extent *e = fl_plan.region != NULL ? block_at((uintptr_t)p) : NULL;

    if (zone == 0 || zone > FL_PLAN_ZONES) {
        return -EINVAL;
    }
    if (e == NULL) {
        return -ENOENT;
    }
    uint32_t watcher = e->life != 0 ? e->watcher : 0;
    /* Another thread that frees it meanwhile leaves other figures there. */
    bool recorded = watcher < atomic_load(&fl_plan.ncontexts) &&
                    fl_record_mark(fl_plan.context[watcher], e->life, zone);
    if (recorded) {
        atomic_store(&fl_plan.context[watcher]->who.asked, true);
    }
    int rc = e->content == FL_CONTENT_INNER ? mark_planned(e, zone) : -ENOENT;
    return recorded ? 0 : rc;
}

/* ---- the layout ---- */

static bool is_in_zone(const struct fl_slot *s)
{
    return s->zone != 0 && s->kind == FL_SLOT_DOUBLE_BUFFERED && s->offset[0] != FL_PACK_NONE;
}

static void add_to_zone(struct fl_plan_zone *z, const struct fl_slot *s)
{
    bool first = z->len == 0;
    uint64_t top[2];

    fl_assert(s->zone <= FL_PLAN_ZONES && s->offset[1] != FL_PACK_NONE);
    for (int i = 0; i < 2; i++) {
        uint64_t begin = s->offset[i], end = begin + s->size, was = z->offset[i] + z->len;
        z->offset[i] = first ? begin : fl_min(z->offset[i], begin);
        top[i] = first ? end : fl_max(was, end);
    }
    z->len = fl_max(top[0] - z->offset[0], top[1] - z->offset[1]);
}

void fl_layout_zones(struct fl_layout *l)
{
    static _Atomic uint32_t serials;

    l->serial = atomic_fetch_add(&serials, 1) + 1;
    memset(l->zone, 0, sizeof l->zone);
    for (const struct fl_slot *s = l->slot; s < l->slot + l->n; s++) {
        if (is_in_zone(s)) {
            add_to_zone(&l->zone[s->zone], s);
        }
    }
}

static uint64_t offset_of(const struct fl_plan_entry *s, int parity)
{
    return s->granule[parity] != FL_ENTRY_NONE ? (uint64_t)s->granule[parity] << FL_GRANULE_SHIFT
                                               : FL_PACK_NONE;
}

/* A mark of this step's is for the next layout. */
static uint32_t zone_of(const struct fl_layout *l, const struct fl_slot *s)
{
    const struct fl_plan_zone *z = &l->zone[s->zone];

    return is_in_zone(s) && s->offset[0] - z->offset[0] < z->len ? s->zone : 0;
}

static struct fl_layout *layout_of(const struct fl_step_context *c)
{
    return c->serve.layout != NULL ? c->serve.layout : c->serve.last;
}

/* The calling thread has the context to itself. */
static int look(const struct fl_step_context *c, struct fl_plan_layout *out,
                struct fl_plan_place *place, size_t room)
{
    const struct fl_layout *l = layout_of(c);
    const struct fl_arena *a = c->serve.arena;

    if (l == NULL || a == NULL || atomic_load(&a->height) == 0 || a->limit < l->height) {
        return -ENODATA;
    }
    *out = (struct fl_plan_layout){
        .generation = (uint64_t)a->use.opening << 32 | l->serial,
        .opening = a->use.opening,
        .base = a->base,
        .height = l->height,
        .limit = a->limit,
        .parity = (unsigned)c->serve.cursor.parity,
        .places = l->n,
    };
    for (unsigned z = 0; z <= FL_PLAN_ZONES; z++) {
        out->zone[z] = l->zone[z];
    }
    for (size_t i = 0; place != NULL && i < fl_min(room, l->n); i++) {
        const struct fl_plan_entry *s = &l->entry[i];
        place[i] = (struct fl_plan_place){
            {offset_of(s, 0), offset_of(s, 1)}, l->slot[i].size, zone_of(l, &l->slot[i])};
    }
    return 0;
}

/* ---- memory that stays ---- */

void fl_plan_let_go(uint64_t opening)
{
    bool left = false;

    fl_plan_lock();
    struct fl_arena *a = fl_plan.arenas;
    while (a != NULL && (a->use.opening != opening || a->use.held == 0)) {
        a = a->next;
    }
    if (a != NULL) {
        left = --a->use.held == 0 && atomic_load(&a->draining);
    }
    fl_plan_unlock();
    if (left) {
        (void)fl_arena_hand_on(a);
    }
}

/* All of the arena is in memory, and stays. */
static int hold_all(struct fl_arena *a)
{
    fl_plan_lock();
    a->use.held++;
    fl_plan_unlock();
    fl_arena_expect(a, a->limit);
    if (!fl_arena_bring(a, 0, a->limit >> FL_GRANULE_SHIFT)) {
        fl_plan_let_go(a->use.opening);
        return -ENOMEM;
    }
    return 0;
}

static int look_and_hold(struct fl_step_context *c, struct fl_plan_layout *out,
                         struct fl_plan_place *place, size_t room, bool holds)
{
    uintptr_t none = 0, self = fl_plan_self();
    int rc = -EBUSY;

    c = c != NULL ? c : fl_plan_mine != NULL ? fl_plan_mine : fl_plan_default;
    if (c == NULL || fl_region_busy()) {
        return c == NULL ? -EINVAL : -EBUSY;
    }
    bool entered = atomic_compare_exchange_strong(&c->who.thread, &none, self | FL_LOOKS);
    bool is_mine = entered || none == self; /* else another thread is in it */
    if (is_mine && !atomic_exchange_explicit(&c->inside, true, memory_order_relaxed)) {
        atomic_signal_fence(memory_order_seq_cst);
        bool ends = entered && !atomic_load(&fl_plan.config.on); /* no step will fill it anew */
        rc = !c->who.open ? -EINVAL : ends ? -ENODATA : look(c, out, place, room);
        if (c->who.open) {
            atomic_store(&c->who.asked, true);
        }
        rc = rc == 0 && holds ? hold_all(c->serve.arena) : rc;
        atomic_signal_fence(memory_order_seq_cst);
        atomic_store_explicit(&c->inside, false, memory_order_relaxed);
    }
    if (entered) {
        atomic_store(&c->who.thread, 0);
    }
    return rc;
}

int fl_plan_layout(struct fl_step_context *c, struct fl_plan_layout *out,
                   struct fl_plan_place *place, size_t room)
{
    return look_and_hold(c, out, place, room, false);
}

int fl_plan_hold(struct fl_step_context *c, struct fl_plan_layout *out)
{
    return look_and_hold(c, out, NULL, 0, true);
}
