/* A terminal of 80 columns and 24 lines on a pty, as far as ncurses needs one for TERM=xterm: what
 * a program writes is shown in cells. */
#ifndef FAULTLESS_TESTS_TOOLS_TERMINAL_H
#define FAULTLESS_TESTS_TOOLS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { FL_TERMINAL_ROWS = 24, FL_TERMINAL_COLUMNS = 80, FL_TERMINAL_RAW = 1 << 16 };

struct fl_terminal {
    pid_t pid;
    int fd; /* the master's side */
    char cell[FL_TERMINAL_ROWS][FL_TERMINAL_COLUMNS + 1];
    int row, column;
    char last;         /* the character that was put last */
    bool is_other;     /* the alternate screen is shown */
    bool was_other;    /* it was, once */
    bool was_reverse;  /* text was reverse, once */
    char sequence[64]; /* an escape sequence that is not over yet */
    size_t len;        /* of it; 0: there is none */
    char raw[FL_TERMINAL_RAW];
    size_t raws; /* all that came, as far as there is room */
};

/* Start a program on a new terminal; environment as fl_child_run. Any failure ends the test. */
void fl_terminal_start(struct fl_terminal *t, const char *const argv[], const char *const env[]);

/* Read what it writes until line `row` (-1: any) has `text`; that it never has ends the test. */
void fl_terminal_await(struct fl_terminal *t, int row, const char *text);

/* The same until it has it no more. */
void fl_terminal_await_gone(struct fl_terminal *t, int row, const char *text);

/* Press keys. */
void fl_terminal_press(struct fl_terminal *t, const char *keys);

/* Read to its end; its exit status, or 128 + signal. */
int fl_terminal_end(struct fl_terminal *t);

#endif
