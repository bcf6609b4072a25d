/* Sources: Open MPI's documentation, "Environment variables set for MPI applications"; torchrun's;
 * srun(1); MPICH's Hydra; HPE's PALS. */
#include "faultstat/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *rank;
    const char *ranks;
} launcher[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"}, /* MPICH, Intel MPI, Cray */
    {"PALS_RANKID", "PALS_SIZE"},
    {"RANK", "WORLD_SIZE"}, /* torchrun */
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

static int number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long number = text != NULL ? strtol(text, &end, 10) : -1;
    return text != NULL && *text != '\0' && *end == '\0' && number >= 0 && number <= INT_MAX
               ? (int)number
               : -1;
}

void fl_rank_get(struct fl_rank *out)
{
    *out = (struct fl_rank){0};
    if (gethostname(out->host, sizeof(out->host) - 1) != 0) {
        snprintf(out->host, sizeof(out->host), "unknown");
    }
    for (size_t i = 0; i < sizeof(launcher) / sizeof(launcher[0]) && !out->is_known; i++) {
        int rank = number_of(launcher[i].rank);
        int ranks = number_of(launcher[i].ranks);
        if (rank >= 0 && ranks > 0) {
            out->is_known = true;
            out->rank = rank;
            out->ranks = ranks;
        }
    }
}

/* Write what stands for %`letter` to `out`; false when nothing does. */
static bool expand(char letter, const struct fl_rank *rank, char *out, size_t len)
{
    switch (letter) {
    case 'r':
        return snprintf(out, len, "%d", rank->is_known ? rank->rank : 0) > 0;
    case 'h':
        return snprintf(out, len, "%s", rank->host) > 0;
    case 'p':
        return snprintf(out, len, "%d", (int)getpid()) > 0;
    case '%':
        return snprintf(out, len, "%%") > 0;
    default:
        return false;
    }
}

/* Before the name's ending, so that `rank*.json` finds all of rank.json. */
static bool add_rank(char path[PATH_MAX], int rank)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = name[0] != '\0' ? strrchr(name + 1, '.') : NULL;
    char ending[NAME_MAX + 1];
    size_t stem = dot != NULL ? (size_t)(dot - path) : strlen(path);
    snprintf(ending, sizeof(ending), "%s", dot != NULL ? dot : "");
    int n = snprintf(path + stem, PATH_MAX - stem, ".%d%s", rank, ending);
    if (n < 0 || (size_t)n >= PATH_MAX - stem) {
        fprintf(stderr, "faultstat: %s: too long\n", path);
        return false;
    }
    return true;
}

bool fl_rank_path(const char *pattern, char path[PATH_MAX])
{
    struct fl_rank rank;
    bool is_own = strcmp(pattern, "-") == 0 || strncmp(pattern, "/dev/", 5) == 0 ||
                  strncmp(pattern, "/proc/", 6) == 0;
    size_t used = 0;
    fl_rank_get(&rank);
    for (const char *at = pattern; *at != '\0'; at++) {
        char piece[HOST_NAME_MAX + 1] = {*at, '\0'};
        if (*at == '%') {
            at++;
            is_own |= *at == 'r' || *at == 'p';
            if (!expand(*at, &rank, piece, sizeof(piece))) {
                fprintf(stderr, "faultstat: %s: %%r, %%h, %%p and %%%% are known\n", pattern);
                return false;
            }
        }
        used += (size_t)snprintf(path + used, PATH_MAX - used, "%s", piece);
        if (used >= PATH_MAX) {
            fprintf(stderr, "faultstat: %s: too long\n", pattern);
            return false;
        }
    }
    return !rank.is_known || rank.ranks <= 1 || is_own || add_rank(path, rank.rank);
}
