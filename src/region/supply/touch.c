/* First touch: large extents are handed out without memory, and the worker puts huge pages under
 * them where, and for whom, they are touched. On only where the worker has opened the door
 * (uffd/touch.c); then a request asks it to arm the extent's range, and the thread that frees one
 * to disarm it. None waits long: unarmed, the kernel's own fault does the same, slower. State:
 * r->touch; a slot belongs to who took it out of FREE, then to the worker while SERVED. */
#include "region/supply/fill_plan.h"
#include "region/state/lock.h"

#include <errno.h>

enum { PATIENCE_NS = 5000000, ROUNDS = 20, TRIES = 8 };

static struct fl_touch_slot *take_slot(struct fl_region *r)
{
    for (struct fl_touch_slot *s = r->touch.slot; s < r->touch.slot + FL_TOUCH_SLOTS; s++) {
        uint32_t free_one = FL_TOUCH_FREE;
        if (atomic_compare_exchange_strong(&s->state, &free_one, FL_TOUCH_TAKEN)) {
            return s;
        }
    }
    return NULL;
}

/* Waits for the worker's answer; a slot that it never took is taken back. */
static int await(struct fl_touch_slot *s)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t now = atomic_load(&s->state);
        if (now == FL_TOUCH_DONE) {
            break;
        }
        (void)fl_sys.wait(&s->state, now, PATIENCE_NS);
        uint32_t asked = FL_TOUCH_ASKED;
        if (atomic_compare_exchange_strong(&s->state, &asked, FL_TOUCH_FREE)) {
            return -ETIMEDOUT;
        }
    }
    uint32_t served = FL_TOUCH_SERVED;
    if (atomic_compare_exchange_strong(&s->state, &served, FL_TOUCH_LEFT)) {
        return -EINPROGRESS; /* the slot is the worker's to give back */
    }
    int rc = s->rc;
    atomic_store(&s->state, FL_TOUCH_FREE);
    return rc;
}

static int ask(struct fl_region *r, struct fl_range range, bool on)
{
    struct fl_touch_slot *s = take_slot(r);

    if (s == NULL) {
        return -EBUSY;
    }
    fl_assert(range.len != 0 && (range.base | range.len) % fl_page.base == 0);
    s->range = range;
    s->on = on;
    atomic_store(&s->state, FL_TOUCH_ASKED);
    r->touch.call();
    return await(s);
}

bool fl_touch_wants(const struct fl_region *r, size_t len)
{
    return atomic_load_explicit(&r->touch.open, memory_order_acquire) && len >= 4 * fl_page.huge;
}

void fl_touch_arm(struct fl_region *r, struct fl_extent *e)
{
    int rc = ask(r, fl_extent_range(e), true);

    e->armed = rc == 0 || rc == -EINPROGRESS;
}

bool fl_touch_disarm(struct fl_region *r, struct fl_extent *e)
{
    /* When the door is closed nothing is armed: in a child of fork, say. */
    bool open = atomic_load_explicit(&r->touch.open, memory_order_acquire);
    bool done = !e->armed || !open || ask(r, fl_extent_range(e), false) == 0;

    e->armed = false;
    return done;
}

void fl_region_serve_touches(struct fl_region *r)
{
    fl_region_lock(r);
    unsigned n = r->zones.placing.nodes != 0 ? r->zones.placing.nodes : 1;
    for (unsigned zone = 0; zone < n;
         zone++) { /* as much as the reserve may be: it is what serves */
        fl_refill_demand(r, r->pressure.total / 8 / n, zone);
    }
    fl_region_unlock(r);
    atomic_store(&r->touch.open, true);
}

static size_t place_piece(int fd, struct fl_range from, uintptr_t to)
{
    size_t done = 0;
    int rc = -EAGAIN;

    for (int i = 0; i < TRIES && done < from.len && rc == -EAGAIN; i++) {
        size_t moved = 0;
        rc = fl_sys.move_pages(fd, (struct fl_range){from.base + done, from.len - done}, to + done,
                               &moved);
        done += moved;
    }
    return done;
}

size_t fl_region_place(struct fl_region *r, int fd, struct fl_range to, unsigned zone)
{
    struct fl_fill_plan *g = FL_FILL_PLAN();
    size_t done = 0;
    bool stuck = false;

    fl_assert(to.len % fl_page.huge == 0);
    fl_fill_begin(g);
    g->supply.from_reserve = to.len;
    g->asked.zone = (uint8_t)zone;
    fl_region_lock(r);
    fl_refill_take(r, g);
    fl_refill_demand(r, to.len, zone);
    fl_region_unlock(r);
    for (unsigned i = 0; i < g->todo.npieces; i++) {
        struct fl_reserve_piece *p = &g->todo.piece[i];
        p->moved = stuck ? 0 : place_piece(fd, p->range, to.base + done);
        stuck = stuck || p->moved < p->range.len;
        done += p->moved;
        fl_assert(done <= to.len);
    }
    fl_region_lock(r);
    fl_refill_give_back(r, &g->todo);
    fl_region_unlock(r);
    fl_fill_return(g);
    __atomic_fetch_add(&r->stats.move_bytes, done, __ATOMIC_RELAXED);
    return done;
}
