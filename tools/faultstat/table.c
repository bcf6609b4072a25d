/* Column widths are those of the widest cell. */
#include "faultstat/table.h"

#include "faultstat/text.h"

#include <stdarg.h>
#include <string.h>

void fl_table_set(struct fl_table *table, size_t row, size_t column, const char *format, ...)
{
    va_list args;
    if (row >= FL_TABLE_ROWS || column >= FL_TABLE_COLUMNS) {
        return;
    }
    va_start(args, format);
    vsnprintf(table->cell[row][column], FL_TABLE_CELL, format, args);
    va_end(args);
    table->rows = row >= table->rows ? row + 1 : table->rows;
    table->columns = column >= table->columns ? column + 1 : table->columns;
}

static void pad(FILE *file, size_t from, size_t to)
{
    for (; from < to; from++) {
        fputc(' ', file);
    }
}

static void print_columns(const struct fl_table *table, const size_t *width, size_t first,
                          size_t end, FILE *file)
{
    for (size_t row = 0; row < table->rows; row++) {
        const char *name = table->cell[row][0];
        size_t owed = width[0] - fl_text_width(name); /* blanks are not left at a line's end */
        fputs(name, file);
        for (size_t column = first; column < end; column++) {
            const char *cell = table->cell[row][column];
            size_t len = fl_text_width(cell);
            owed += 2 + width[column] - len;
            if (len > 0) {
                pad(file, 0, owed);
                fputs(cell, file);
                owed = 0;
            }
        }
        fputc('\n', file);
    }
}

void fl_table_print(const struct fl_table *table, FILE *file, size_t columns)
{
    size_t width[FL_TABLE_COLUMNS] = {0};
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t column = 0; column < table->columns; column++) {
            size_t len = fl_text_width(table->cell[row][column]);
            width[column] = len > width[column] ? len : width[column];
        }
    }
    size_t end;
    for (size_t first = 1; first < table->columns; first = end) {
        size_t used = width[0] + 2 + width[first];
        for (end = first + 1; end < table->columns && used + 2 + width[end] <= columns; end++) {
            used += 2 + width[end];
        }
        if (first > 1) {
            fputc('\n', file);
        }
        print_columns(table, width, first, end, file);
    }
}

static void print_escaped(FILE *file, const char *cell)
{
    for (; *cell != '\0'; cell++) {
        fprintf(file, *cell == '|' || *cell == '\\' ? "\\%c" : "%c", *cell);
    }
}

void fl_table_markdown(const struct fl_table *table, FILE *file)
{
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t column = 0; column < table->columns; column++) {
            fputs(column > 0 ? " | " : "| ", file);
            print_escaped(file, table->cell[row][column]);
        }
        fputs(" |\n", file);
        for (size_t column = 0; row == 0 && column < table->columns; column++) {
            fputs(column == 0 ? "|---" : "|---:", file);
        }
        fputs(row == 0 ? "|\n" : "", file);
    }
}
