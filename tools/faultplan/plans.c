/* Reads plan files. */
#include "faultplan/plans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

bool fl_plans_is(const char *path)
{
    struct stat s;
    size_t len;

    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) {
        return false;
    }
    int rc = fl_file_look(path, &len);
    return rc == 0 || rc == -ENOTSUP || rc == -EMSGSIZE;
}

void *fl_plans_read(const char *path)
{
    size_t len;
    int rc = fl_file_look(path, &len);
    void *file = rc == 0 ? malloc(len + 1) : NULL;

    if (file != NULL) {
        rc = fl_file_read(path, file, len);
    } else if (rc == 0) {
        rc = -ENOMEM;
    }
    if (rc != 0) {
        fprintf(stderr, "faultplan: %s: %s\n", path, fl_file_why(rc));
        free(file);
        return NULL;
    }
    return file;
}

bool fl_plans_table(const struct fl_slot *slot, size_t n, uint64_t granule, struct fl_table *out)
{
    struct fl_merge_buffers b = {.buffer = calloc(2 * n + 1, sizeof *b.buffer),
                                 .back = calloc(2 * n + 1, sizeof *b.back)};
    struct fl_merge_unit unit = {granule, UINT64_MAX, granule};
    bool is_good = b.back != NULL && b.buffer != NULL;

    if (is_good) {
        fl_merge_buffers(slot, n, unit, &b);
    } else {
        fprintf(stderr, "faultplan: no memory for %zu slots\n", n);
    }
    *out = (struct fl_table){.buffer = b.buffer, .n = is_good ? b.n : 0, .has_offset = true};
    free(b.back);
    if (!is_good) {
        fl_table_free(out);
    }
    return is_good;
}
