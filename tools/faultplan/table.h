/* Tables of buffers: a text file whose first line names the columns, id,lower,upper,size and
 * perhaps offset and alignment, in any order; the others are looked past. Numbers are decimal. A
 * buffer lives from lower to upper, this one excluded. */
#ifndef FAULTLESS_FAULTPLAN_TABLE_H
#define FAULTLESS_FAULTPLAN_TABLE_H

#include "pack/pack.h"

struct fl_table {
    struct fl_pack_buffer *buffer;
    const char **id; /* of each; in `text` */
    size_t n;
    bool has_offset;
    char *text;
};

/* False: a line on standard error says what is wrong with the file, and where. */
bool fl_table_read(struct fl_table *t, const char *path);
/* With offsets; "-": standard output. False: likewise. */
bool fl_table_write(const struct fl_table *t, const char *path);
void fl_table_free(struct fl_table *t);

struct fl_packing {
    struct fl_pack_result result;
    double ms;
};

/* Gives the buffers offsets. False: a line on standard error. */
bool fl_table_pack(struct fl_table *t, struct fl_packing *out);

/* A number of bytes, with K, M, G or T behind it perhaps, or argp's error. */
struct argp_state;
uint64_t fl_table_parse_number(const char *arg, struct argp_state *state);
/* The one file of the command line, for argp's parser: *path, NULL before. Returns what argp's
 * parser does. */
int fl_table_parse_path(int key, const char *arg, struct argp_state *state, const char **path);

#endif
