/* ncurses. No colours: bold and reverse text alone, and neither where NO_COLOR is set. */
#include "faultstat/top/screen.h"

#include "faultstat/text.h"
#include "faultstat/top/show.h"

#include <curses.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FL_HEAD = 2, FL_FOOT = 1 }; /* lines around the processes */
enum { FL_HELP = 40 };             /* columns, at most, of the last line's beginning */

static volatile sig_atomic_t ended; /* by a signal */
static SCREEN *screen;

static void note_signal(int number)
{
    (void)number;
    ended = 1;
}

bool fl_screen_can(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && terminal != NULL &&
           terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal}; /* no SA_RESTART: it ends a wait */
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
}

bool fl_screen_begin(void)
{
    (void)setlocale(LC_CTYPE, ""); /* for UTF-8; figures keep their point */
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        return false;
    }
    catch_signals();
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    return true;
}

static attr_t attribute(attr_t wanted)
{
    const char *no_color = getenv("NO_COLOR");
    return no_color != NULL && no_color[0] != '\0' ? A_NORMAL : wanted;
}

/* One line, filled up where it has an attribute. */
static void put(int row, const char *line, attr_t how)
{
    (void)attrset((int)attribute(how));
    (void)mvaddstr(row, 0, line);
    for (int x = getcurx(stdscr); how != A_NORMAL && getcury(stdscr) == row && x < COLS - 1; x++) {
        (void)addch(' ');
    }
    (void)attrset((int)A_NORMAL);
}

static void draw_processes(const struct fl_top *top, size_t columns, size_t fits, size_t *first)
{
    char line[FL_TOP_LINE];
    size_t most = top->count > fits ? top->count - fits : 0;
    *first = *first < most ? *first : most;
    fl_top_titles(columns, line);
    put(1, line, A_REVERSE);
    for (size_t i = 0; i < fits && *first + i < top->count; i++) {
        fl_top_line(&top->process[*first + i], columns, line);
        put(FL_HEAD + (int)i, line, A_NORMAL);
    }
}

static void draw_legend(size_t columns, size_t fits)
{
    char line[FL_TOP_LINE];
    for (size_t i = 0; i < fits && fl_top_legend(i, columns, line); i++) {
        put(FL_HEAD + (int)i, line, A_NORMAL);
    }
}

void fl_screen_draw(const struct fl_top *top, struct fl_screen_view *view)
{
    char line[FL_TOP_LINE];
    char note[FL_TOP_LINE];
    size_t columns = COLS > 0 ? (size_t)COLS : FL_COLUMNS;
    int rows = LINES - FL_HEAD - FL_FOOT;
    size_t fits = rows > 0 ? (size_t)rows : 0;
    (void)erase();
    fl_top_sums(top, columns, line);
    put(0, line, A_BOLD);
    if (view->has_legend) {
        draw_legend(columns, fits);
    } else {
        draw_processes(top, columns, fits, &view->first);
    }
    fl_top_note(top, columns > FL_HELP ? columns - FL_HELP : 0, note);
    snprintf(line, sizeof(line), "q quit  h legend  s sort (%s)  %.*s", fl_top_key_name(view->key),
             FL_TOP_LINE - FL_HELP, note);
    put(LINES - 1, line, A_NORMAL);
    (void)refresh();
}

enum fl_screen_answer fl_screen_wait(long ms)
{
    timeout((int)ms);
    int key = getch();
    if (ended) {
        return FL_SCREEN_QUIT;
    }
    switch (key) {
    case ERR:
        return FL_SCREEN_TIME;
    case 'q':
    case 'Q':
        return FL_SCREEN_QUIT;
    case 's':
        return FL_SCREEN_SORT;
    case 'h':
    case '?':
        return FL_SCREEN_LEGEND;
    case KEY_DOWN:
    case 'j':
        return FL_SCREEN_DOWN;
    case KEY_UP:
    case 'k':
        return FL_SCREEN_UP;
    default:
        return FL_SCREEN_DRAW;
    }
}

void fl_screen_end(void)
{
    (void)endwin();
    delscreen(screen);
    screen = NULL;
}
