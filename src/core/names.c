/* Names of files that several processes share an option for: %p, %h and %r. */
#include "core/core.h"

#include <string.h>

/* In the order of their trust: what started the ranks last comes first. */
static const char *const ranks[] = {
    "OMPI_COMM_WORLD_RANK=", /* Open MPI */
    "PMIX_RANK=",            /* PRRTE, Slurm's pmix */
    "PMI_RANK=",             /* MPICH, Intel MPI */
    "MV2_COMM_WORLD_RANK=",  /* MVAPICH2 */
    "PALS_RANKID=",          /* PALS */
    "RANK=",                 /* torchrun */
    "SLURM_PROCID=",         /* srun */
};

static bool is_number(const char *s)
{
    size_t n = strspn(s, "0123456789");

    return n >= 1 && n <= 9 && s[n] == '\0';
}

void fl_names_read(struct fl_names *n, char *const env[])
{
    char host[sizeof n->host + 1] = "";

    *n = (struct fl_names){.rank = "0"};
    for (size_t i = 0; env != NULL && i < sizeof ranks / sizeof ranks[0]; i++) {
        size_t len = strlen(ranks[i]);
        for (char *const *e = env; *e != NULL; e++) {
            if (strncmp(*e, ranks[i], len) == 0 && is_number(*e + len)) {
                struct fl_text t = fl_text_on(n->rank, sizeof n->rank);
                fl_text_str(&t, *e + len);
                i = sizeof ranks / sizeof ranks[0] - 1; /* no other is looked for */
                break;
            }
        }
    }
    (void)fl_sys.read_file("/proc/sys/kernel/hostname", host, sizeof host);
    host[strcspn(host, "\n")] = '\0';
    for (char *c = host; *c != '\0'; c++) {
        if (*c == '/') {
            *c = '_'; /* it is a part of a file's name */
        }
    }
    struct fl_text t = fl_text_on(n->host, sizeof n->host);
    fl_text_str(&t, host[0] != '\0' ? host : "localhost");
}

bool fl_names_expand(const struct fl_names *n, const char *name, int pid, char *out, size_t size)
{
    struct fl_text t = fl_text_on(out, size);

    for (; *name != '\0' && t.len + 1 < size; name++) {
        char one[2] = {*name, '\0'};
        if (name[0] == '%' && name[1] == 'p' && pid != 0) {
            fl_text_u64(&t, (uint64_t)pid);
        } else if (name[0] == '%' && name[1] == 'h') {
            fl_text_str(&t, n->host);
        } else if (name[0] == '%' && name[1] == 'r') {
            fl_text_str(&t, n->rank);
        } else {
            fl_text_str(&t, one);
            continue;
        }
        name++;
    }
    return *name == '\0' && t.len + 1 < size;
}
