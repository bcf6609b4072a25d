/* The check of a process that runs, from its number to the exit status. */
#include "launcher/check.h"
#include "launcher/output.h"
#include "launcher/process.h"

#include "faultstat/family.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool add(struct fl_tree *t, pid_t pid, int *rc)
{
    struct fl_process *p = malloc(sizeof *p);

    *rc = p != NULL ? fl_process_read(pid, p) : -ENOMEM;
    if (p == NULL || (*rc == -ESRCH)) { /* it has ended meanwhile */
        free(p);
        return false;
    }
    t->process[t->count++] = p;
    t->served += p->verdict == FL_VERDICT_SERVED || p->verdict == FL_VERDICT_IDLE;
    return true;
}

static int read_all(struct fl_tree *t, pid_t pid)
{
    static struct fl_family family; /* static for its size */
    int first, rc;

    if (!add(t, pid, &first) || first != 0) {
        return first;
    }
    fl_family_update(&family, pid);
    for (size_t i = 1; i < family.count && t->count < FL_TREE_MOST; i++) {
        if (family.member[i].is_alive && family.member[i].pid != getpid()) {
            (void)add(t, family.member[i].pid, &rc);
        }
    }
    t->left = (unsigned)family.lost;
    return first;
}

int fl_tree_main(pid_t pid, const char *json)
{
    static struct fl_tree t;
    int rc = read_all(&t, pid);

    if (rc != 0) {
        fprintf(stderr, "faultless: process %d: %s\n", (int)pid, strerror(-rc));
        return rc == -ESRCH ? FL_EXIT_NOT_FOUND : rc == -ENOMEM ? FL_EXIT_OWN : FL_EXIT_CANNOT_RUN;
    }
    FILE *out = fl_output_open(json);
    if (out != NULL) {
        (json != NULL ? fl_tree_print_json : fl_tree_print)(&t, out);
    }
    for (unsigned i = 0; i < t.count; i++) {
        fl_process_end(t.process[i]);
        free(t.process[i]);
    }
    if (out == NULL || !fl_output_close(out, json)) {
        return FL_EXIT_OWN;
    }
    return t.served == t.count ? EXIT_SUCCESS : EXIT_FAILURE;
}
