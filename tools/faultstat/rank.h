/* This process's place in a parallel job, as its launcher left it in the environment. */
#ifndef FAULTLESS_FAULTSTAT_RANK_H
#define FAULTLESS_FAULTSTAT_RANK_H

#include <limits.h>
#include <stdbool.h>

struct fl_rank {
    bool is_known;
    int rank;
    int ranks; /* in the whole job; 0: the launcher does not say */
    char host[HOST_NAME_MAX + 1];
};

/* Read it. `host` is always known. */
void fl_rank_get(struct fl_rank *out);

/* Write `pattern` into `path` with %r, %h, %p and %% replaced; in a job of several ranks a file
 * name without %r or %p gets .RANK, before its ending. False after a line on standard error. */
bool fl_rank_path(const char *pattern, char path[PATH_MAX]);

#endif
