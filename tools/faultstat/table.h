/* An aligned table of short text cells: the first column to the left, the others to the right. */
#ifndef FAULTLESS_FAULTSTAT_TABLE_H
#define FAULTLESS_FAULTSTAT_TABLE_H

#include <stddef.h>
#include <stdio.h>

enum { FL_TABLE_COLUMNS = 20, FL_TABLE_ROWS = 64, FL_TABLE_CELL = 64 };

struct fl_table {
    size_t rows;
    size_t columns;
    char cell[FL_TABLE_ROWS][FL_TABLE_COLUMNS][FL_TABLE_CELL];
};

/* Set one cell by printf; a cell past the table's size is dropped, a text too long is cut. */
void fl_table_set(struct fl_table *table, size_t row, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Print it, two spaces between columns. Where it is wider than `columns`, what does not fit follows
 * below, with the first column again. */
void fl_table_print(const struct fl_table *table, FILE *file, size_t columns);

/* Print it in Markdown. */
void fl_table_markdown(const struct fl_table *table, FILE *file);

#endif
