/* A region on two nodes, for tests of its zones: requests have the zonelist that the test says, and
 * nodes are full when it says so. */
#ifndef FL_TESTS_UNIT_ZONES_FIXTURE_H
#define FL_TESTS_UNIT_ZONES_FIXTURE_H

#include "unit/region_fixture.h"

enum { NODES = 2, TOUCH = 2 * NODES, SPREAD = 2 * NODES + 1 };

extern struct fl_zonelist next_zones; /* of the next requests */
extern unsigned nasked;               /* times that one asked for it */
extern bool full[NODES];
extern unsigned lies_on; /* what programs touched */
extern unsigned filling; /* the zone that is filled ahead now; NODES: none */
extern size_t nmap;      /* maps that were made; set to 0 to forget them */
extern const struct fl_placing placing;

/* Divides the region; and begins one first. */
void divide(void);
void begin_divided(void);
/* The same as the set-up of a test. */
int divided_begin(void **state);
/* The next requests are for that node, else the other; or for what its threads touch. */
void ask_on(unsigned node);
void ask_touched(unsigned node);
/* For which zone the page was mapped last. */
unsigned mapped_for(uintptr_t addr);
/* All of it was mapped for that zone. */
void assert_lies(const struct fl_extent *e, unsigned zone);
struct fl_extent *take_on(unsigned node, size_t len);

#endif
