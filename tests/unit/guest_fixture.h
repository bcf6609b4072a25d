/* The linker wraps fl_guest_start (CMakeLists.txt): in tests a guest is a thread of pthread_create,
 * so that sanitizers know it and the C library's functions work on it. Tests count them and can
 * refuse them. */
#ifndef FL_TESTS_UNIT_GUEST_FIXTURE_H
#define FL_TESTS_UNIT_GUEST_FIXTURE_H

#include "sys/sys.h"

struct guests {
    _Atomic int begun, ended;
    _Atomic int refusals, refuse_as; /* so many starts are answered with -errno */
};

extern struct guests guests;

#endif
