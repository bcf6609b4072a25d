#include "prop/two_nodes.h"

#include "region/wait/cache.h"

#include <string.h>

enum {
    TOUCH = 2 * TWO_NODES,
    SPREAD = TOUCH + 1,
    SPREAD_EVERY = 16, /* of a thread's requests: pages in turns; */
    TOUCH_EVERY = 8,   /* what it touches */
    FULL_EVERY = 64,   /* of the questions for room: there is none */
    PAGES = 1 << 19,   /* of which it is noted where they lie */
};

_Thread_local unsigned two_nodes_here;
static _Thread_local unsigned asked;
static unsigned turn;  /* Lock: region */
static unsigned turns; /* of the policy; one thread */
static struct fl_range watched;
static uint8_t lies[PAGES]; /* a zone; of a page of `watched` */

static void zonelist(size_t len, struct fl_zonelist *out)
{
    unsigned node = two_nodes_here;

    (void)len;
    *out = (struct fl_zonelist){.n = 2, .zone = {(uint8_t)node, (uint8_t)(1 - node)}};
    if (++asked % SPREAD_EVERY == 0) {
        *out = (struct fl_zonelist){.n = 1, .zone = {SPREAD}};
    } else if (asked % TOUCH_EVERY == 0) {
        *out = (struct fl_zonelist){
            .n = 1, .zone = {TOUCH}, .on_touch = true, .touched = (uint8_t)(TWO_NODES + node)};
    }
}

static int same_number(unsigned zone)
{
    return (int)zone;
}

static unsigned same_zone(int number)
{
    return (unsigned)number;
}

static size_t page_of(uintptr_t addr)
{
    return fl_min((addr - watched.base) >> fl_page.shift, PAGES);
}

static void note_map(struct fl_range range, unsigned zone)
{
    struct fl_range part = fl_range_common(range, watched);
    size_t first = page_of(part.base);

    if (part.len != 0) {
        memset(lies + first, (int)zone, page_of(fl_range_end(part)) - first);
    }
}

bool two_nodes_lies(struct fl_range range, unsigned zone)
{
    size_t page = page_of(range.base), end = page_of(fl_range_end(range));

    while (page < end && lies[page] == zone) {
        page++;
    }
    return page == end;
}

static void note_own_map(struct fl_range range)
{
    (void)range;
}

static bool has_room(unsigned zone, size_t bytes)
{
    (void)bytes;
    return zone >= TWO_NODES || ++turn % FULL_EVERY != 0;
}

static unsigned where(struct fl_range range)
{
    return range.base >> 21 & 1;
}

static unsigned nowhere(int tid)
{
    (void)tid;
    return TWO_NODES;
}

static void look(unsigned zone)
{
    (void)zone;
}

static void end(void)
{
}

const struct fl_placing two_nodes = {.nodes = TWO_NODES,
                                     .alike_below = 32 * FL_MIB,
                                     .zonelist = zonelist,
                                     .zone_of = same_zone,
                                     .number_of = same_number,
                                     .mapped = note_map,
                                     .mapped_own = note_own_map,
                                     .has_room = has_room,
                                     .look = look,
                                     .found = where,
                                     .runs_on = nowhere,
                                     .fill_begin = look,
                                     .fill_end = end};

unsigned two_nodes_of(unsigned cpu)
{
    return (cpu + turns) % TWO_NODES;
}

static void note_sites(void)
{
    for (unsigned cpu = 0; cpu < FL_CPU_IDS; cpu++) {
        atomic_store(&fl_site[cpu], FL_SITE_FIRST + TWO_NODES * turns + two_nodes_of(cpu));
    }
}

void two_nodes_begin(void)
{
    asked = turn = turns = two_nodes_here = 0;
    watched.len = 0;
    note_sites();
}

void two_nodes_turn(void)
{
    turns++;
    note_sites();
}

void two_nodes_watch(struct fl_range window)
{
    watched = window;
}
