/* The full screen, by ncurses: shows lines, and says which key was pressed. Leaves to show.h what
 * is in them. */
#ifndef FAULTLESS_FAULTSTAT_TOP_SCREEN_H
#define FAULTLESS_FAULTSTAT_TOP_SCREEN_H

#include "faultstat/top/figures.h"

#include <stdbool.h>

/* May there be a screen: is this a terminal that can place text? */
bool fl_screen_can(void);

/* Take the screen over. False: ncurses does not know the terminal; nothing has changed. */
bool fl_screen_begin(void);

/* What is on it. */
struct fl_screen_view {
    enum fl_top_key key; /* processes are sorted by */
    size_t first;        /* the process on top */
    bool has_legend;     /* in place of the processes */
};

/* Show all that fits; `view->first` is changed where it is too large. */
void fl_screen_draw(const struct fl_top *top, struct fl_screen_view *view);

enum fl_screen_answer {
    FL_SCREEN_TIME,   /* the time is up */
    FL_SCREEN_QUIT,   /* `q`, or a signal */
    FL_SCREEN_SORT,   /* `s`: the next key */
    FL_SCREEN_LEGEND, /* `h` or `?` */
    FL_SCREEN_DOWN,
    FL_SCREEN_UP,
    FL_SCREEN_DRAW, /* another size, or a key that means nothing */
};

/* Wait for a key, `ms` at most. */
enum fl_screen_answer fl_screen_wait(long ms);

/* Give the screen back. */
void fl_screen_end(void);

#endif
