/* Between the two files of the fake kernel; tests include fake_sys.h. */
#ifndef FL_TESTS_UNIT_FAKE_MAP_H
#define FL_TESTS_UNIT_FAKE_MAP_H

#include "unit/fake_sys.h"

/* Around what several threads may do at once; nothing while the fake is quiet. */
void fake_enter(void);
void fake_leave(void);
/* The scripted answer to the call; 0: let it happen. */
int fake_scripted(enum fake_slot slot);
/* Into the log, with its answer, which is returned. */
int fake_note(enum fake_slot slot, struct fl_range r, int rc);
int fake_note_advice(enum fake_slot slot, struct fl_range r, int rc, enum fl_sys_advice advice);

/* In a forked child: forgets what it did not inherit. */
void fake_map_forked(void);

/* Fills in the slots of fake_map.c. */
void fake_map_slots(struct fl_sys *table);

#endif
