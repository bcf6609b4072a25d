/* A route over the fixture's region, for the tests of alloc/: booted, with the C library's malloc
 * as the next allocator. */
#ifndef FL_TESTS_UNIT_ROUTE_FIXTURE_H
#define FL_TESTS_UNIT_ROUTE_FIXTURE_H

#include "unit/next_libc.h"
#include "unit/region_fixture.h"

struct fl_route fl_route;

static void boot_nothing(void)
{
}

static void note_nothing(struct fl_cache *c)
{
    (void)c;
}

/* To the tests' region: requests of 64 KiB and more, by no thread's cache. */
static inline struct fl_route route_to_region(void)
{
    return (struct fl_route){
        .threshold = KIB(64),
        .window_base = region.space.window.all.base,
        .window_len = region.space.window.all.len,
        .next = NEXT_LIBC,
        .region = &region,
        .booted = FL_BOOT_DONE,
        .boot = boot_nothing,
        .thread_ends = note_nothing,
        .first_large = boot_nothing,
    };
}

/* On a new region. */
static inline void route_begin(void)
{
    region_begin(NULL);
    fl_route = route_to_region();
}

#endif
