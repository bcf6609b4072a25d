/* How many processes share this host: what the user says, else what the launcher of the ranks left
 * in the environment.
 *
 * Sources: Open MPI's documentation, "Environment variables set for MPI applications"; torchrun's;
 * srun(1) and sbatch(1), output environment variables; MPICH's and Intel MPI's Hydra; HPE's PALS
 * and Cray PMI. */
#include "core/core.h"

#include <string.h>

enum { MOST = 4096 }; /* ranks; as many as FAULTLESS_HOST_SHARE may say */

/* STARTED: a launcher says what it started. ASKED: what a Slurm job asked for, which counts where
 * no launcher says more: a shell has it, too, that starts one process alone. */
enum source { STARTED, ASKED, SOURCES };

static const struct {
    const char *name;
    enum source source;
} table[] = {
    {"OMPI_COMM_WORLD_LOCAL_SIZE=", STARTED}, /* Open MPI */
    {"MPI_LOCALNRANKS=", STARTED},            /* MPICH, Intel MPI */
    {"MV2_COMM_WORLD_LOCAL_SIZE=", STARTED},  /* MVAPICH2 */
    {"PMI_LOCAL_SIZE=", STARTED},             /* Cray PMI */
    {"PALS_LOCAL_SIZE=", STARTED},            /* PALS */
    {"LOCAL_WORLD_SIZE=", STARTED},           /* torchrun */
    {"SLURM_STEP_TASKS_PER_NODE=", STARTED},  /* srun */
    {"SLURM_NTASKS_PER_NODE=", ASKED},
};

/* A number from 1 to MOST at the front of *s, which it steps over. */
static bool parse_count(const char **s, unsigned *out)
{
    *out = 0;
    for (; **s >= '0' && **s <= '9' && *out <= MOST; (*s)++) {
        *out = *out * 10 + (unsigned)(**s - '0');
    }
    return *out >= 1 && *out <= MOST;
}

/* The largest of Slurm's counts, a node each: "4", "4(x2)" for two nodes of 4, "4(x2),3". 0: it is
 * no such list. */
static unsigned largest_count(const char *s)
{
    unsigned largest = 0, count, nodes;

    for (;; s++) {
        if (!parse_count(&s, &count)) {
            return 0;
        }
        if (strncmp(s, "(x", 2) == 0) {
            s += 2;
            if (!parse_count(&s, &nodes) || *s++ != ')') {
                return 0;
            }
        }
        largest = count > largest ? count : largest;
        if (*s != ',') {
            return *s == '\0' ? largest : 0;
        }
    }
}

unsigned fl_ranks(const struct fl_options *o, char *const env[])
{
    unsigned most[SOURCES] = {0};

    if (o->value[FL_OPTION_host_share] != 0) {
        return (unsigned)o->value[FL_OPTION_host_share];
    }
    for (; env != NULL && *env != NULL; env++) {
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
            size_t len = strlen(table[i].name);
            if (strncmp(*env, table[i].name, len) == 0) {
                unsigned *known = &most[table[i].source];
                unsigned count = largest_count(*env + len);
                *known = count > *known ? count : *known;
            }
        }
    }
    for (size_t i = 0; i < SOURCES; i++) {
        if (most[i] != 0) {
            return most[i];
        }
    }
    return 1;
}
