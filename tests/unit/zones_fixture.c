#include "unit/zones_fixture.h"

#include "unit/cmocka_all.h"

enum { MAPS = 64 };
struct fl_zonelist next_zones;
bool full[NODES];
unsigned lies_on;
static struct {
    struct fl_range range;
    unsigned zone;
} map[MAPS];
size_t nmap;

unsigned nasked;

static void zonelist(size_t len, struct fl_zonelist *out)
{
    nasked++;
    *out = next_zones;
}

static void mapped(struct fl_range range, unsigned zone)
{
    assert_true(nmap < MAPS);
    map[nmap].range = range;
    map[nmap++].zone = zone;
}

static void mapped_own(struct fl_range range)
{
}

static void no_look(unsigned zone)
{
}

static bool has_room(unsigned zone, size_t bytes)
{
    return zone >= NODES || !full[zone];
}

static unsigned found(struct fl_range range)
{
    return lies_on;
}

static unsigned runs_on(int tid)
{
    return 0;
}

unsigned filling = NODES;

static void fill_begin(unsigned zone)
{
    filling = zone;
}

static void fill_end(void)
{
    filling = NODES;
}

const struct fl_placing placing = {.nodes = NODES,
                                   .alike_below = MIB(32),
                                   .zonelist = zonelist,
                                   .mapped = mapped,
                                   .mapped_own = mapped_own,
                                   .has_room = has_room,
                                   .look = no_look,
                                   .found = found,
                                   .runs_on = runs_on,
                                   .fill_begin = fill_begin,
                                   .fill_end = fill_end};

void divide(void)
{
    nmap = 0;
    full[0] = full[1] = false;
    fl_region_divide(&region, &placing);
}

void begin_divided(void)
{
    region_begin(NULL);
    divide();
}

int divided_begin(void **state)
{
    begin_divided();
    return 0;
}

void ask_on(unsigned node)
{
    next_zones = (struct fl_zonelist){.n = 2, .zone = {(uint8_t)node, (uint8_t)(1 - node)}};
}

void ask_touched(unsigned node)
{
    next_zones = (struct fl_zonelist){
        .n = 1, .zone = {TOUCH}, .on_touch = true, .touched = (uint8_t)(NODES + node)};
}

/* For which zone the page was mapped last. */
unsigned mapped_for(uintptr_t addr)
{
    for (size_t i = nmap; i-- > 0;) {
        if (addr - map[i].range.base < map[i].range.len) {
            return map[i].zone;
        }
    }
    fail_msg("%#lx was not mapped", (unsigned long)addr);
    return 0;
}

void assert_lies(const struct fl_extent *e, unsigned zone)
{
    assert_non_null(e);
    assert_int_equal(e->zone, zone);
    assert_int_equal(mapped_for(e->base), zone);
    assert_int_equal(mapped_for(e->base + e->len - 1), zone);
}

struct fl_extent *take_on(unsigned node, size_t len)
{
    ask_on(node);
    return take(len);
}
