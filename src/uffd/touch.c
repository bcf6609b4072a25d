/* Serves first touches: a huge page of the stock for each thread that waits, and more ahead of one
 * that goes on in a line.
 *
 * Each thread that touches has a stream: the next huge page in its line doubles what is placed
 * ahead, so that an initialisation by several threads, a chunk each, is followed chunk by chunk.
 * Where the stock is empty a huge page is filled while its toucher waits, if no other thread does.
 * Where several do, for their own faults fill at the same time, and where something is there
 * already, the kernel serves: that huge page is disarmed. Where even that is refused (it makes
 * maps, of which a process may have so many) the descriptor is closed: no thread may wait for ever.
 * When this thread ends, or the process, the kernel closes the descriptor, and disarms all. State:
 * `touch`, this thread's alone; r->touch as region/supply/touch.c has it. */
#include "uffd/internal.h"

#include <poll.h>

enum { RANGES = 256, STREAMS = 16, AHEAD_MOST = 16, WAITING = 16 }; /* AHEAD_MOST: huge pages */

struct stream {
    int tid;
    uintptr_t next; /* where its line goes on */
    size_t ahead;   /* huge pages to place beyond the one that is touched */
};

static struct {
    int fd;
    struct fl_range range[RANGES]; /* what is armed */
    unsigned nrange, forgotten;
    struct stream stream[STREAMS];
    unsigned oldest; /* the stream that the next new thread replaces */
} touch = {.fd = -1};

static struct fl_range *find_range(uintptr_t addr)
{
    fl_assert(touch.nrange <= RANGES);
    for (struct fl_range *r = touch.range; r < touch.range + touch.nrange; r++) {
        if (addr - r->base < r->len) {
            return r;
        }
    }
    return NULL;
}

static int arm(struct fl_range r, bool on)
{
    struct fl_range *known = find_range(r.base);

    fl_assert(touch.fd >= 0 && r.len != 0 && (r.base | r.len) % fl_page.base == 0);
    int rc = fl_sys.touch_arm(touch.fd, r, on);
    if (on && rc == 0) { /* what is forgotten is served as well, but nothing ahead of it */
        touch.range[touch.nrange < RANGES ? touch.nrange++ : touch.forgotten++ % RANGES] = r;
    } else if (!on && known != NULL) {
        *known = touch.range[--touch.nrange];
    }
    return rc;
}

static void answer(struct fl_touch_slot *s)
{
    uint32_t served = FL_TOUCH_SERVED;

    fl_assert(atomic_load(&s->state) != FL_TOUCH_FREE && atomic_load(&s->state) != FL_TOUCH_ASKED);
    if (atomic_compare_exchange_strong(&s->state, &served, FL_TOUCH_DONE)) {
        (void)fl_sys.wake(&s->state, 1);
    } else {
        atomic_store(&s->state, FL_TOUCH_FREE);
    }
}

uint64_t fl_touch_requests(struct fl_region *r)
{
    for (struct fl_touch_slot *s = r->touch.slot; s < r->touch.slot + FL_TOUCH_SLOTS; s++) {
        uint32_t asked = FL_TOUCH_ASKED;
        if (atomic_compare_exchange_strong(&s->state, &asked, FL_TOUCH_SERVED)) {
            s->rc = arm(s->range, s->on);
            answer(s);
        }
    }
    return FL_JOB_IDLE;
}

static struct stream *stream_of(int tid)
{
    for (struct stream *s = touch.stream; s < touch.stream + STREAMS; s++) {
        if (s->tid == tid) {
            return s;
        }
    }
    struct stream *s = &touch.stream[touch.oldest++ % STREAMS];
    *s = (struct stream){.tid = tid};
    return s;
}

static void place_ahead(struct fl_region *r, struct stream *s, uintptr_t from, unsigned zone)
{
    const struct fl_range *armed = find_range(from);

    fl_assert(from % fl_page.huge == 0);
    s->ahead = s->next == from - fl_page.huge ? fl_min(2 * s->ahead + 1, AHEAD_MOST) : 0;
    fl_assert(s->ahead <= AHEAD_MOST);
    s->next = from;
    if (s->ahead != 0 && armed != NULL) {
        size_t len = fl_min(s->ahead * fl_page.huge, fl_range_end(*armed) - from);
        s->next += fl_region_place(r, touch.fd, (struct fl_range){from, len}, zone);
    }
}

/* Who waits for a page at `addr`. */
struct waiting {
    uintptr_t addr;
    int tid;
};

/* False: the thread that touched waits still. `alone`: no other does. */
static bool serve_one(struct fl_region *r, struct waiting w, bool alone)
{
    struct fl_range page = {fl_align_down(w.addr, fl_page.huge), fl_page.huge};
    unsigned nodes = r->zones.placing.nodes,
             zone = nodes != 0 ? r->zones.placing.runs_on(w.tid) : 0;

    zone = zone < nodes ? zone : 0;

    size_t placed = fl_region_place(r, touch.fd, page, zone);
    if (placed == 0 && alone && fl_region_fill_now(r, page.len, zone)) {
        placed = fl_region_place(r, touch.fd, page, zone);
    }
    fl_assert(placed <= page.len);
    /* It ends at the first base page that is there already, which may lie before the one that is
     * wanted. */
    if (placed <= w.addr - page.base) {
        return fl_sys.touch_arm(touch.fd, page, false) == 0;
    }
    place_ahead(r, stream_of(w.tid), fl_range_end(page), zone);
    return true;
}

/* All who wait now; one thread waits once. */
static size_t read_waiting(int fd, struct waiting out[static WAITING])
{
    size_t n = 0;

    while (n < WAITING && fl_sys.touch_read(fd, &out[n].addr, &out[n].tid) == 0) {
        n++;
    }
    return n;
}

static bool serve(struct fl_worker *w, const struct fl_source *s, short came)
{
    struct waiting waiting[WAITING];
    bool served = (came & POLLIN) != 0;
    size_t n;

    while (served && (n = read_waiting(s->fd, waiting)) != 0) {
        for (size_t i = 0; i < n && served; i++) {
            served = serve_one(w->region, waiting[i], n == 1);
        }
    }
    if (!served) {
        atomic_store(&w->region->touch.open, false);
    }
    return served;
}

void fl_touch_open(struct fl_worker *w)
{
    const struct fl_region_config *c = &w->region->config;

    touch.fd = -1;
    touch.nrange = 0;
    if (c->first_touch && !c->no_stock && w->wake_fd >= 0 && fl_sys.touch_open(&touch.fd) == 0 &&
        fl_source_add(w, (struct fl_source){.fd = touch.fd, .events = POLLIN, .handle = serve})) {
        fl_region_serve_touches(w->region);
    }
}
