/* Columns, each with a figure that may not be known: "-". */
#include "faultstat/top/show.h"

#include "faultstat/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FL_CELL = 64, FL_NAME_COLUMNS = 12 };

/* ---- cells ---- */

/* At most 5 characters. */
static void put_size(double bytes, char cell[FL_CELL])
{
    static const char unit[] = "BKMGTPE";
    size_t i = 0;
    for (; bytes >= 1000 && i < sizeof(unit) - 2; i++) {
        bytes /= 1024;
    }
    if (isnan(bytes)) {
        snprintf(cell, FL_CELL, "-");
    } else {
        snprintf(cell, FL_CELL, bytes > 0 && bytes < 9.95 && i > 0 ? "%.1f%c" : "%.0f%c", bytes,
                 unit[i]);
    }
}

/* At most 6 characters. */
static void put_rate(double rate, char cell[FL_CELL])
{
    static const char unit[] = " kMGT";
    size_t i = 0;
    for (; rate >= 99999.5 && i < sizeof(unit) - 2; i++) {
        rate /= 1000;
    }
    if (isnan(rate)) {
        snprintf(cell, FL_CELL, "-");
    } else {
        snprintf(cell, FL_CELL, "%.0f%.*s", rate < 99999 ? rate : 99999, i > 0, unit + i);
    }
}

static void put_pct(double pct, char cell[FL_CELL])
{
    if (isnan(pct)) {
        snprintf(cell, FL_CELL, "-");
    } else {
        snprintf(cell, FL_CELL, "%.0f", pct);
    }
}

static void pid_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    snprintf(cell, FL_CELL, "%d", (int)p->pid);
}

static void name_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    char *name = fl_text_line(p->name);
    snprintf(cell, FL_CELL, "%.*s", FL_CELL - 1, name != NULL ? name : "");
    free(name);
}

static void method_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    snprintf(cell, FL_CELL, "%s", fl_top_method(p));
}

static void plan_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    snprintf(cell, FL_CELL, "%s", fl_top_plan(p));
}

static void hit_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_pct(fl_top_hit_pct(p), cell);
}

static void live_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_size(fl_top_figure(p, FL_LIVE_LIVE_BYTES), cell);
}

static void resident_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_size((double)p->rss, cell);
}

static void reserve_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_size(fl_top_figure(p, FL_LIVE_RESERVE_BYTES), cell);
}

static void faults_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_rate(p->faults_s, cell);
}

static void huge_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_pct(fl_top_huge_pct(p), cell);
}

static void remote_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_pct(p->remote_pct, cell);
}

static void requests_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_rate(p->requests_s, cell);
}

static void stalls_cell(const struct fl_top_process *p, char cell[FL_CELL])
{
    put_rate(fl_top_figure(p, FL_LIVE_STALLS), cell);
}

/* ---- lines ---- */

/* A column is left out where it does not fit; those that matter least come last. */
static const struct column {
    const char *title;
    size_t width;
    bool is_left;
    void (*put)(const struct fl_top_process *p, char cell[FL_CELL]);
    const char *meaning;
} column[] = {
    {"PID", 7, false, pid_cell, "the process's number"},
    {"COMMAND", FL_NAME_COLUMNS, true, name_cell, "its name"},
    {"METHOD", 6, true, method_cell,
     "how pages move: uffd, mremap, none; ?: not known yet; off: not served"},
    {"PLAN", 5, true, plan_cell,
     "its farthest plan's state: serve, pack, learn, rest, in this order"},
    {"HIT%", 4, false, hit_cell, "of the requests of planned steps: served where the plan says"},
    {"LIVE", 5, false, live_cell, "bytes of the large blocks that the program has"},
    {"RES", 5, false, resident_cell, "bytes in memory: the resident set"},
    {"RESRV", 5, false, reserve_cell, "bytes that the library holds for no block"},
    {"FLT/S", 6, false, faults_cell, "minor page faults a second"},
    {"HUGE%", 5, false, huge_cell, "of the anonymous memory: in huge pages"},
    {"REM%", 4, false, remote_cell, "of the anonymous memory: on nodes where no thread runs"},
    {"REQ/S", 6, false, requests_cell, "large requests a second"},
    {"STALLS", 6, false, stalls_cell, "requests that waited for memory, since the process began"},
};

enum { FL_COLUMN_COUNT = sizeof(column) / sizeof(column[0]) };

/* Adds `cell`, cut or padded to `width` columns. */
static size_t put_cell(char line[FL_TOP_LINE], size_t used, const char *cell, size_t width,
                       bool is_left)
{
    char cut[FL_CELL + 4];
    size_t len = 0;
    size_t wide = 0;
    while (cell[len] != '\0' && len < sizeof(cut) - 4) {
        size_t next = len + 1;
        while (((unsigned char)cell[next] & 0xc0) == 0x80) {
            next++;
        }
        if (wide + 1 > width) {
            break;
        }
        wide++;
        len = next;
    }
    memcpy(cut, cell, len);
    cut[len] = '\0';
    int pad = (int)(width - wide);
    int n = snprintf(line + used, FL_TOP_LINE - used, "%s%*s%s%*s", used > 0 ? " " : "",
                     is_left ? 0 : pad, "", cut, is_left ? pad : 0, "");
    return n > 0 && used + (size_t)n < FL_TOP_LINE ? used + (size_t)n : used;
}

static void put_line(const struct fl_top_process *p, size_t columns, char line[FL_TOP_LINE])
{
    size_t used = 0;
    size_t wide = 0;
    line[0] = '\0';
    for (size_t i = 0; i < FL_COLUMN_COUNT; i++) {
        char cell[FL_CELL];
        size_t space = i > 0;
        if (wide + space + column[i].width > columns) {
            break;
        }
        if (p != NULL) {
            column[i].put(p, cell);
        }
        used = put_cell(line, used, p != NULL ? cell : column[i].title, column[i].width,
                        column[i].is_left);
        wide += space + column[i].width;
    }
    while (used > 0 && line[used - 1] == ' ') {
        line[--used] = '\0';
    }
}

void fl_top_titles(size_t columns, char line[FL_TOP_LINE])
{
    put_line(NULL, columns, line);
}

void fl_top_line(const struct fl_top_process *p, size_t columns, char line[FL_TOP_LINE])
{
    put_line(p, columns, line);
}

static void add_known(double *sum, double value)
{
    *sum += isnan(value) ? 0 : value;
}

void fl_top_sums(const struct fl_top *top, size_t columns, char line[FL_TOP_LINE])
{
    double live = 0, resident = 0, reserve = 0, faults = 0;
    char cell[4][FL_CELL];
    for (size_t i = 0; i < top->count; i++) {
        const struct fl_top_process *p = &top->process[i];
        add_known(&live, fl_top_figure(p, FL_LIVE_LIVE_BYTES));
        add_known(&reserve, fl_top_figure(p, FL_LIVE_RESERVE_BYTES));
        resident += (double)p->rss;
        faults += p->faults_s;
    }
    put_size(live, cell[0]);
    put_size(resident, cell[1]);
    put_size(reserve, cell[2]);
    put_rate(faults, cell[3]);
    snprintf(line, columns + 1 < FL_TOP_LINE ? columns + 1 : FL_TOP_LINE,
             "%zu process%s: live %s, resident %s, reserve %s, %s page faults a second", top->count,
             top->count == 1 ? "" : "es", cell[0], cell[1], cell[2], cell[3]);
}

void fl_top_note(const struct fl_top *top, size_t columns, char line[FL_TOP_LINE])
{
    const struct fl_top_process *first = NULL;
    size_t count = 0;
    char reason[FL_TOP_REASON];
    line[0] = '\0';
    for (size_t i = 0; i < top->count; i++) {
        if (top->process[i].error != 0) {
            first = first != NULL ? first : &top->process[i];
            count++;
        }
    }
    if (first != NULL) {
        fl_top_reason(first, reason);
        snprintf(line, columns + 1 < FL_TOP_LINE ? columns + 1 : FL_TOP_LINE,
                 "no counters of %zu process%s: %s", count, count == 1 ? "" : "es", reason);
    }
}

bool fl_top_legend(size_t i, size_t columns, char line[FL_TOP_LINE])
{
    static const char *const rest[] = {
        "",
        "K, M, G, T: powers of 1,024.  -: not known.  Rates: since the last round.",
        "q quits, s sorts by the next figure, arrows scroll, h or ? ends this.",
    };
    size_t most = columns + 1 < FL_TOP_LINE ? columns + 1 : FL_TOP_LINE;
    if (i < FL_COLUMN_COUNT) {
        snprintf(line, most, "%-8s %s", column[i].title, column[i].meaning);
    } else if (i - FL_COLUMN_COUNT < sizeof(rest) / sizeof(rest[0])) {
        snprintf(line, most, "%s", rest[i - FL_COLUMN_COUNT]);
    } else {
        return false;
    }
    return true;
}

void fl_top_print(const struct fl_top *top, size_t columns, FILE *file)
{
    char line[FL_TOP_LINE];
    fl_top_sums(top, columns, line);
    fprintf(file, "%s\n", line);
    fl_top_titles(columns, line);
    fprintf(file, "%s\n", line);
    for (size_t i = 0; i < top->count; i++) {
        fl_top_line(&top->process[i], columns, line);
        fprintf(file, "%s\n", line);
    }
    fl_top_note(top, columns, line);
    if (line[0] != '\0') {
        fprintf(file, "%s\n", line);
    }
}
