/* The descriptors of fl-uffd, for tests: fl_events replaced by a table whose files, answers and
 * events are scripted.
 *
 * Descriptors are numbers that mean something only here. poll really sleeps, on a condition; its
 * time is that of the fake clock (fake_sys.h). State: one `fake_events` a process, under its own
 * lock; tests use the functions below. */
#ifndef FL_TESTS_UNIT_FAKE_EVENTS_H
#define FL_TESTS_UNIT_FAKE_EVENTS_H

#include "unit/fake_sys.h"

enum { FAKE_EVENT_FILES = 8, FAKE_EVENT_FDS = 64 };

struct fake_events {
    /* the script, between two threads */
    int own_table_rc, wake_open_rc;
    _Atomic int wake_send_rc, poll_rc;
    bool no_fine_trigger, no_trigger;
    struct {
        const char *path;
        bool read_only;
    } file[FAKE_EVENT_FILES];
    size_t nfile;
    /* what happened */
    unsigned own_tables;
    _Atomic unsigned polls, wakes, takes;
    _Atomic unsigned looks; /* at the clock and the events, while in poll */
    _Atomic bool untimed;   /* the last poll had no timer */
    char told[8][64];       /* texts that were accepted, the last ones */
    unsigned ntold;
    struct {
        char path[256]; /* "wake" and "counter" are none */
        bool open;
        short ready;
    } fd[FAKE_EVENT_FDS];
};

extern struct fake_events fake_events;

/* Puts the table in place: no file can be opened, everything else works. */
void fake_events_install(void);
/* That file can be opened. */
void fake_events_file(const char *path, bool read_only);
/* How many descriptors are open now, and those of one path. */
unsigned fake_events_open(const char *path_or_null);
/* poll says so of the descriptor of that path, until it is taken; for a file of stalls until it is
 * seen. */
void fake_events_raise(const char *path, short what);
/* The same of two at one moment. */
void fake_events_raise_two(const char *path, const char *other, short what);
/* Was it seen, or taken? */
bool fake_events_is_seen(const char *path);
/* A signal out of nowhere. */
void fake_events_stray_wake(void);

#endif
