/* faultstat top on a terminal: what stands on the screen, what keys do, and that the terminal is
 * given back. With FL_SHOW_SCREEN in its environment it prints the screen. */
#include "cases.h"
#include "live_victim.h"
#include "terminal.h"

#include <signal.h>
#include <sys/ioctl.h>

static struct fl_terminal terminal;
static struct fl_live_victim victim;

static void start_victim(void)
{
    victim = fl_live_victim_begin("work", fl_live_victim_still);
}

static void end_victim(void)
{
}

static void start_top(const char *term, const char *more)
{
    const char *pid = fl_live_victim_text(victim.pid);
    fl_terminal_start(&terminal, ARGV(FL_FAULTSTAT, "top", "-p", pid, "-d", "0.3", "-n", "100"),
                      ARGV(term, more));
}

CASE(the_screen_has_sums_titles_processes_and_help)
{
    start_top("TERM=xterm", NULL);
    fl_terminal_await(&terminal, FL_TERMINAL_ROWS - 1, "q quit  h legend  s sort (live)");
    fl_terminal_await(&terminal, 2, " victim_live ");
    if (getenv("FL_SHOW_SCREEN") != NULL) {
        for (int i = 0; i < FL_TERMINAL_ROWS; i++) {
            printf("|%s|\n", terminal.cell[i]);
        }
    }
    assert_says(terminal.cell[0], "1 process: live 48M, resident ");
    assert_memory_equal(terminal.cell[1], "    PID COMMAND      METHOD PLAN  HIT%", 38);
    assert_says(terminal.cell[1], "LIVE   RES RESRV  FLT/S HUGE% REM%");
    assert_int_equal(atoi(terminal.cell[2]), victim.pid);
    assert_says(terminal.cell[2], "  48M ");
    for (int i = 3; i < FL_TERMINAL_ROWS - 1; i++) {
        assert_int_equal(strspn(terminal.cell[i], " "), FL_TERMINAL_COLUMNS);
    }
    assert_true(terminal.is_other && terminal.was_reverse);
    fl_terminal_press(&terminal, "q");
    assert_int_equal(fl_terminal_end(&terminal), 0);
    assert_true(terminal.was_other && !terminal.is_other);
}

CASE(keys_sort_by_another_figure)
{
    start_top("TERM=xterm", NULL);
    fl_terminal_await(&terminal, FL_TERMINAL_ROWS - 1, "(live)");
    fl_terminal_press(&terminal, "s");
    fl_terminal_await(&terminal, FL_TERMINAL_ROWS - 1, "(resident)");
    fl_terminal_press(&terminal, "ss");
    fl_terminal_await(&terminal, FL_TERMINAL_ROWS - 1, "(faults)");
    fl_terminal_press(&terminal, "jkx\033[Bq"); /* scrolling, and keys that mean nothing */
    assert_int_equal(fl_terminal_end(&terminal), 0);
}

CASE(a_key_shows_what_columns_and_keys_mean)
{
    static const char *const keys[] = {"h", "?"};
    for (size_t i = 0; i < 2; i++) {
        start_top("TERM=xterm", NULL);
        fl_terminal_await(&terminal, FL_TERMINAL_ROWS - 1, "h legend");
        fl_terminal_press(&terminal, keys[i]);
        fl_terminal_await(&terminal, -1, "RESRV    bytes that the library holds for no block");
        fl_terminal_await(&terminal, -1, "h or ? ends this.");
        fl_terminal_press(&terminal, keys[i]);
        fl_terminal_await(&terminal, 2, " victim_live ");
        fl_terminal_press(&terminal, "q");
        assert_int_equal(fl_terminal_end(&terminal), 0);
    }
}

CASE(a_narrow_terminal_has_fewer_columns)
{
    struct winsize narrow = {.ws_row = FL_TERMINAL_ROWS, .ws_col = 50};
    start_top("TERM=xterm", NULL);
    fl_terminal_await(&terminal, 1, "REM%");
    assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &narrow), 0); /* which sends SIGWINCH */
    fl_terminal_await_gone(&terminal, 1, "REM%");
    fl_terminal_await(&terminal, 1, "LIVE");
    fl_terminal_press(&terminal, "q");
    assert_int_equal(fl_terminal_end(&terminal), 0);
}

CASE(signals_give_the_terminal_back)
{
    static const int number[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < 3; i++) {
        start_top("TERM=xterm", NULL);
        fl_terminal_await(&terminal, 2, " victim_live ");
        assert_int_equal(kill(terminal.pid, number[i]), 0);
        assert_int_equal(fl_terminal_end(&terminal), 0);
        assert_true(terminal.was_other && !terminal.is_other);
    }
}

CASE(no_color_means_plain_text)
{
    start_top("TERM=xterm", "NO_COLOR=1");
    fl_terminal_await(&terminal, 2, " victim_live ");
    fl_terminal_press(&terminal, "q");
    assert_int_equal(fl_terminal_end(&terminal), 0);
    assert_false(terminal.was_reverse);
}

CASE(a_dumb_terminal_gets_lines)
{
    start_top("TERM=dumb", NULL);
    fl_terminal_await(&terminal, 2, " victim_live ");
    assert_null(strchr(terminal.raw, '\033'));
    assert_int_equal(kill(terminal.pid, SIGTERM), 0);
    assert_int_equal(fl_terminal_end(&terminal), 128 + SIGTERM);
}

CASE(an_unknown_terminal_gets_lines)
{
    start_top("TERM=no-such-terminal", NULL);
    fl_terminal_await(&terminal, 2, " victim_live ");
    assert_null(strchr(terminal.raw, '\033'));
    assert_int_equal(kill(terminal.pid, SIGTERM), 0);
    assert_int_equal(fl_terminal_end(&terminal), 128 + SIGTERM);
}

LIVE_VICTIM_MAIN("test_tools_top_screen", .group_setup = start_victim, .group_teardown = end_victim)
