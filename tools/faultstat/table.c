/* Column widths are those of the widest cell. */
#include "faultstat/table.h"

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

void fl_table_print(const struct fl_table *table, FILE *file)
{
    int width[FL_TABLE_COLUMNS] = {0};
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t column = 0; column < table->columns; column++) {
            int len = (int)strlen(table->cell[row][column]);
            width[column] = len > width[column] ? len : width[column];
        }
    }
    for (size_t row = 0; row < table->rows; row++) {
        fprintf(file, "%-*s", width[0], table->cell[row][0]);
        for (size_t column = 1; column < table->columns; column++) {
            fprintf(file, "  %*s", width[column], table->cell[row][column]);
        }
        fputc('\n', file);
    }
}
