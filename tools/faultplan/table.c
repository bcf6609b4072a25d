/* Reads, packs and writes tables of buffers. */
#include "faultplan/table.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum column { ID, LOWER, UPPER, SIZE, OFFSET, ALIGNMENT, COLUMNS };

static const char *const column_name[COLUMNS] = {"id",   "lower",  "upper",
                                                 "size", "offset", "alignment"};

enum { FIELDS_MOST = 64 };

struct reader {
    const char *path;
    size_t line;
    int field_of[COLUMNS]; /* -1: the table has none */
};

static bool complain(const struct reader *r, const char *what)
{
    fprintf(stderr, "faultplan: %s:%zu: %s\n", r->path, r->line, what);
    return false;
}

/* The whole file, with a NUL behind it. */
static char *read_all(const char *path)
{
    FILE *file = fopen(path, "re");
    size_t room = 1 << 16, len = 0;
    char *text = malloc(room + 1);

    while (file != NULL && text != NULL) {
        len += fread(text + len, 1, room - len, file);
        if (len < room) {
            break;
        }
        room *= 2;
        char *more = realloc(text, room + 1);
        if (more == NULL) {
            free(text);
        }
        text = more;
    }
    if (file == NULL || text == NULL || ferror(file) != 0) {
        fprintf(stderr, "faultplan: %s: %s\n", path, strerror(errno));
        free(text);
        text = NULL;
    } else if (memchr(text, '\0', len) != NULL) {
        fprintf(stderr, "faultplan: %s: not a text file\n", path);
        free(text);
        text = NULL;
    } else {
        text[len] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

/* The next line without its end, or NULL. */
static char *next_line(char **at)
{
    char *line = *at;

    if (*line == '\0') {
        return NULL;
    }
    *at = line + strcspn(line, "\n");
    if (**at == '\n') {
        *(*at)++ = '\0';
    }
    line[strcspn(line, "\r")] = '\0';
    return line;
}

static int split(char *line, char *field[FIELDS_MOST])
{
    int n = 0;

    for (char *at = line; at != NULL && n < FIELDS_MOST;) {
        field[n++] = strsep(&at, ",");
    }
    return n;
}

static bool read_header(struct reader *r, char *line)
{
    char *field[FIELDS_MOST];
    int n = line == NULL ? 0 : split(line, field);

    for (int c = 0; c < COLUMNS; c++) {
        r->field_of[c] = -1;
        for (int i = 0; i < n; i++) {
            if (strcmp(field[i], column_name[c]) == 0) {
                r->field_of[c] = i;
            }
        }
        if (r->field_of[c] < 0 && c < OFFSET) {
            return complain(r, "the first line must name the columns id,lower,upper,size");
        }
    }
    return true;
}

static bool read_row(struct reader *r, char *line, struct fl_table *t)
{
    struct fl_pack_buffer *b = &t->buffer[t->n];
    uint64_t number[COLUMNS] = {0};
    char *field[FIELDS_MOST];
    int n = split(line, field);

    for (int c = 0; c < COLUMNS; c++) {
        if (r->field_of[c] >= n) {
            return complain(r, "there are fewer fields than columns");
        }
        if (c == ID || r->field_of[c] < 0) {
            continue;
        }
        const char *text = field[r->field_of[c]];
        char *end;
        errno = 0;
        number[c] = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
            fprintf(stderr, "faultplan: %s:%zu: '%s' is no number (%s)\n", r->path, r->line, text,
                    column_name[c]);
            return false;
        }
    }
    if (number[UPPER] < number[LOWER]) {
        return complain(r, "upper is before lower");
    }
    if (number[SIZE] >= (uint64_t)1 << 47) {
        return complain(r, "a size of 2^47 or more");
    }
    if (number[OFFSET] >= (uint64_t)1 << 62) {
        return complain(r, "an offset of 2^62 or more");
    }
    if (number[ALIGNMENT] > (uint64_t)1 << 47 ||
        (number[ALIGNMENT] & (number[ALIGNMENT] - 1)) != 0) {
        return complain(r, "an alignment that is no power of two up to 2^47");
    }
    *b = (struct fl_pack_buffer){.birth = number[LOWER],
                                 .death = number[UPPER],
                                 .size = number[SIZE],
                                 .align = number[ALIGNMENT],
                                 .offset = number[OFFSET]};
    t->id[t->n++] = field[r->field_of[ID]];
    return true;
}

bool fl_table_read(struct fl_table *t, const char *path)
{
    struct reader r = {.path = path, .line = 1};
    size_t lines = 1;

    *t = (struct fl_table){.text = read_all(path)};
    if (t->text == NULL) {
        return false;
    }
    for (const char *c = t->text; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    char *at = t->text;
    t->buffer = calloc(lines, sizeof *t->buffer);
    t->id = calloc(lines, sizeof *t->id);
    bool is_good = t->buffer != NULL && t->id != NULL && read_header(&r, next_line(&at));
    t->has_offset = r.field_of[OFFSET] >= 0;
    while (is_good) {
        char *line = next_line(&at);
        r.line++;
        if (line == NULL) {
            return true;
        }
        is_good = *line == '\0' || read_row(&r, line, t);
    }
    fl_table_free(t);
    return false;
}

bool fl_table_write(const struct fl_table *t, const char *path)
{
    bool is_stdout = strcmp(path, "-") == 0;
    FILE *file = is_stdout ? stdout : fopen(path, "we");

    if (file == NULL) {
        fprintf(stderr, "faultplan: %s: %s\n", path, strerror(errno));
        return false;
    }
    fprintf(file, "id,lower,upper,size,offset,alignment\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct fl_pack_buffer *b = &t->buffer[i];
        fprintf(file, "%s,%llu,%llu,%llu,%llu,%llu\n", t->id[i], (unsigned long long)b->birth,
                (unsigned long long)b->death, (unsigned long long)b->size,
                (unsigned long long)b->offset, (unsigned long long)fl_max(b->align, 1));
    }
    bool is_good = fflush(file) == 0 && ferror(file) == 0;
    if (!is_stdout) {
        is_good &= fclose(file) == 0;
    }
    if (!is_good) {
        fprintf(stderr, "faultplan: %s: %s\n", path, strerror(errno));
    }
    return is_good;
}

void fl_table_free(struct fl_table *t)
{
    free(t->buffer);
    free(t->id);
    free(t->text);
    *t = (struct fl_table){0};
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The memory is there before the clock starts: the packer's time is what is asked for. */
bool fl_table_pack(struct fl_table *t, struct fl_packing *out)
{
    size_t len = fl_pack_scratch(t->n);
    void *scratch =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (scratch == MAP_FAILED) {
        fprintf(stderr, "faultplan: no memory for %zu buffers\n", t->n);
        return false;
    }
    uint64_t begin = now_ns();
    int rc = fl_pack(t->buffer, t->n, scratch, len, &out->result);
    out->ms = (double)(now_ns() - begin) / 1e6;
    munmap(scratch, len);
    if (rc != 0) {
        fprintf(stderr, "faultplan: these buffers cannot be packed: %s\n", strerror(-rc));
    }
    return rc == 0;
}

uint64_t fl_table_parse_number(const char *arg, struct argp_state *state)
{
    uint64_t number = 0;

    if (fl_parse_size(arg, &number) != 0) {
        argp_error(state, "'%s' is no number", arg);
    }
    return number;
}

int fl_table_parse_path(int key, const char *arg, struct argp_state *state, const char **path)
{
    switch (key) {
    case ARGP_KEY_ARG:
        if (*path != NULL) {
            argp_error(state, "more than one file");
        }
        *path = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no file given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}
