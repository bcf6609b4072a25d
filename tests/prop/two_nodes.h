/* A machine with two nodes, for regions on the fake kernel: the zonelist of a thread goes by the
 * node that it stands on. */
#ifndef FL_TESTS_PROP_TWO_NODES_H
#define FL_TESTS_PROP_TWO_NODES_H

#include "numa/numa.h"

enum { TWO_NODES = 2 };

extern const struct fl_placing two_nodes;
extern _Thread_local unsigned two_nodes_here; /* the node of the calling thread */

/* All counts begin anew. */
void two_nodes_begin(void);
/* The first node of requests on that CPU: half of the CPUs each. */
unsigned two_nodes_of(unsigned cpu);
/* The policy changes: the other node, from here on. */
void two_nodes_turn(void);
/* From here on what is mapped there is noted; one thread. */
void two_nodes_watch(struct fl_range window);
/* Was all of `range`, a part of that, mapped for the zone, the last time? */
bool two_nodes_lies(struct fl_range range, unsigned zone);

#endif
