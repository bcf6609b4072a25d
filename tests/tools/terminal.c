/* Control sequences: ECMA-48, and xterm's own for the alternate screen. What only changes how text
 * looks, or how keys are sent, is left out. */
#include "terminal.h"

#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void clear(struct fl_terminal *t, int row, int from, int to)
{
    if (row >= 0 && row < FL_TERMINAL_ROWS && from < to && to <= FL_TERMINAL_COLUMNS) {
        memset(t->cell[row] + from, ' ', (size_t)(to - from));
    }
}

static void clear_rows(struct fl_terminal *t, int from, int to)
{
    for (int row = from; row < to; row++) {
        clear(t, row, 0, FL_TERMINAL_COLUMNS);
    }
}

static int bounded(int value, int most)
{
    return value < 0 ? 0 : value < most ? value : most - 1;
}

static void move(struct fl_terminal *t, int row, int column)
{
    t->row = bounded(row, FL_TERMINAL_ROWS);
    t->column = bounded(column, FL_TERMINAL_COLUMNS);
}

static void put(struct fl_terminal *t, char c)
{
    if (t->column == FL_TERMINAL_COLUMNS) { /* wrapping waits for the next character */
        move(t, t->row + 1, 0);
    }
    t->cell[t->row][t->column++] = c;
    t->last = c;
}

static void erase(struct fl_terminal *t, char what, int how)
{
    int column = bounded(t->column, FL_TERMINAL_COLUMNS);
    bool before = how == 1 || how == 2;
    bool behind = how == 0 || how == 2;
    clear(t, t->row, before ? 0 : column, behind ? FL_TERMINAL_COLUMNS : column + 1);
    if (what == 'J') {
        clear_rows(t, before ? 0 : t->row, t->row);
        clear_rows(t, t->row + 1, behind ? FL_TERMINAL_ROWS : t->row);
    }
}

/* A sequence that began with ESC [ and is whole. */
static void obey(struct fl_terminal *t)
{
    int a = 0;
    int b = 0;
    char end = t->sequence[t->len - 1];
    const char *numbers = t->sequence + 2;
    (void)sscanf(numbers, "%d;%d", &a, &b);
    int n = a > 0 ? a : 1;
    switch (end) {
    case 'H':
    case 'f':
        move(t, n - 1, b > 0 ? b - 1 : 0);
        break;
    case 'd':
        move(t, n - 1, t->column);
        break;
    case 'G':
    case '`':
        move(t, t->row, n - 1);
        break;
    case 'A':
        move(t, t->row - n, t->column);
        break;
    case 'B':
        move(t, t->row + n, t->column);
        break;
    case 'C':
        move(t, t->row, t->column + n);
        break;
    case 'D':
        move(t, t->row, t->column - n);
        break;
    case 'J':
    case 'K':
        erase(t, end, a);
        break;
    case 'X':
        clear(t, t->row, t->column, bounded(t->column + n - 1, FL_TERMINAL_COLUMNS) + 1);
        break;
    case 'b':
        for (int i = 0; i < n; i++) {
            put(t, t->last);
        }
        break;
    case 'h':
    case 'l':
        if (strncmp(numbers, "?1049", 5) == 0) {
            t->is_other = end == 'h';
            t->was_other = true;
        }
        break;
    case 'm':
        t->was_reverse = t->was_reverse || strstr(numbers, "7m") != NULL;
        break;
    case 'r':
    case 't':
        break;
    default:
        fail_msg("the terminal does not know ESC %s", t->sequence + 1);
    }
}

static bool is_over(const struct fl_terminal *t)
{
    char end = t->sequence[t->len - 1];
    if (t->len < 2) {
        return false;
    }
    if (t->sequence[1] == '[') {
        return t->len > 2 && end >= 0x40 && end <= 0x7e;
    }
    return strchr("()", t->sequence[1]) == NULL || t->len == 3; /* of a character set */
}

static void take(struct fl_terminal *t, char c)
{
    if (t->raws < sizeof(t->raw) - 1) {
        t->raw[t->raws++] = c;
        t->raw[t->raws] = '\0';
    }
    if (t->len > 0 || c == '\033') {
        assert_true(t->len < sizeof(t->sequence) - 1);
        t->sequence[t->len++] = c;
        t->sequence[t->len] = '\0';
        if (is_over(t)) {
            if (t->sequence[1] == '[') {
                obey(t);
            }
            t->len = 0;
        }
    } else if (c == '\r') {
        t->column = 0;
    } else if (c == '\n') {
        move(t, t->row + 1, t->column);
    } else if (c == '\b') {
        move(t, t->row, t->column - 1);
    } else if ((unsigned char)c >= ' ') {
        put(t, c);
    }
}

void fl_terminal_start(struct fl_terminal *t, const char *const argv[], const char *const env[])
{
    struct winsize size = {.ws_row = FL_TERMINAL_ROWS, .ws_col = FL_TERMINAL_COLUMNS};
    union {
        const char *const *in;
        char *const *out;
    } args = {.in = argv};
    memset(t, 0, sizeof(*t));
    clear_rows(t, 0, FL_TERMINAL_ROWS);
    t->pid = forkpty(&t->fd, NULL, NULL, &size);
    assert_true(t->pid >= 0);
    if (t->pid == 0) {
        unsetenv("NO_COLOR");
        for (size_t i = 0; env[i] != NULL; i++) {
            putenv(strdup(env[i]));
        }
        execv(argv[0], args.out);
        _exit(99);
    }
}

/* Some bytes more. False: there will be none. */
static bool read_some(struct fl_terminal *t)
{
    char text[4096];
    ssize_t n = read(t->fd, text, sizeof(text));
    for (ssize_t i = 0; i < n; i++) {
        take(t, text[i]);
    }
    return n > 0;
}

static bool has(const struct fl_terminal *t, int row, const char *text)
{
    for (int i = row < 0 ? 0 : row; i < (row < 0 ? FL_TERMINAL_ROWS : row + 1); i++) {
        if (strstr(t->cell[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

void fl_terminal_await(struct fl_terminal *t, int row, const char *text)
{
    while (!has(t, row, text)) {
        if (!read_some(t)) {
            fail_msg("'%s' is not on the screen", text);
        }
    }
}

void fl_terminal_await_gone(struct fl_terminal *t, int row, const char *text)
{
    while (has(t, row, text)) {
        if (!read_some(t)) {
            fail_msg("'%s' stays on the screen", text);
        }
    }
}

void fl_terminal_press(struct fl_terminal *t, const char *keys)
{
    assert_int_equal(write(t->fd, keys, strlen(keys)), strlen(keys));
}

int fl_terminal_end(struct fl_terminal *t)
{
    int status;
    while (read_some(t)) {
    }
    close(t->fd);
    assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
