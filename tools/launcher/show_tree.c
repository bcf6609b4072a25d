/* A process after the other, and how many are served. */
#include "launcher/process.h"

#include "launcher/json.h"

#include <inttypes.h>

enum { SCHEMA = 1, SENTENCE = 640 };

static void print_memory(const struct fl_process *p, FILE *out)
{
    if (p->anonymous == FL_UNLIMITED) {
        return;
    }
    if (p->ours == FL_UNLIMITED || p->library[0] == '\0') {
        fl_row(out, "", "%s of anonymous memory", fl_size(p->anonymous));
    } else {
        fl_row(out, "", "%s of anonymous memory, of which %s %s faultless's", fl_size(p->anonymous),
               p->ours != 0 ? fl_size(p->ours) : "none", p->ours != 0 ? "are" : "is");
    }
}

static void print_limits(const struct fl_process *p, FILE *out)
{
    if (p->as != FL_UNLIMITED || p->data != FL_UNLIMITED || p->group != FL_UNLIMITED) {
        fl_row(out, "", "limits: address space %s, data %s, control group %s", fl_size(p->as),
               fl_size(p->data), fl_size(p->group));
    }
}

static void print_process(struct fl_process *p, FILE *out)
{
    static const char *const word[] = {"not known: ", "served", "served, but no large request yet",
                                       "not served: "};
    char label[16], text[SENTENCE];

    snprintf(label, sizeof label, "%d", (int)p->pid);
    fl_row(out, label, "%s: %s%s", p->name, word[p->verdict], p->reason);
    if (p->verdict == FL_VERDICT_UNKNOWN) {
        return;
    }
    print_memory(p, out);
    for (unsigned i = 0; i < p->nown; i++) {
        if (fl_allocators_say(&p->own[i], fl_process_value, p, text, sizeof text)) {
            fl_row(out, "", "%s", text);
        }
    }
    if (p->thp_off) {
        fl_row(out, "",
               "huge pages are off for it: itself, or what started it, has called "
               "prctl(PR_SET_THP_DISABLE)");
    }
    print_limits(p, out);
}

void fl_tree_print(const struct fl_tree *t, FILE *out)
{
    for (unsigned i = 0; i < t->count; i++) {
        print_process(t->process[i], out);
    }
    fl_row(out, "verdict", "%u of %u %s served", t->served, t->count,
           t->count == 1 ? "process is" : "processes are");
    if (t->left != 0) {
        fl_row(out, "", "%u more were not looked at", t->left);
    }
}

static void print_own(struct fl_process *p, FILE *out)
{
    const char *text[FL_PROCESS_OWN];
    char sentence[FL_PROCESS_OWN][SENTENCE];
    unsigned n = 0;

    for (unsigned i = 0; i < p->nown; i++) {
        if (fl_allocators_say(&p->own[i], fl_process_value, p, sentence[n], SENTENCE)) {
            text[n] = sentence[n];
            n++;
        }
    }
    fl_put_list(out, "own", text, n);
}

void fl_tree_print_json(const struct fl_tree *t, FILE *out)
{
    static const char *const word[] = {"unknown", "served", "idle", "not served"};

    fprintf(out, "{\"schema\": %d, \"served\": %u, \"not_looked_at\": %u, \"processes\": [", SCHEMA,
            t->served, t->left);
    for (unsigned i = 0; i < t->count; i++) {
        struct fl_process *p = t->process[i];
        fprintf(out, "%s{\"pid\": %d", i == 0 ? "" : ", ", (int)p->pid);
        fl_put_member(out, "name", p->name);
        fl_put_member(out, "verdict", word[p->verdict]);
        fl_put_member(out, "reason", p->reason);
        fl_put_member(out, "library", p->library);
        fl_put_bytes(out, "anonymous_bytes", p->anonymous);
        fl_put_bytes(out, "ours_bytes", p->ours);
        print_own(p, out);
        fl_put_truth(out, "huge_pages_off", p->thp_off);
        fl_put_bytes(out, "address_space_bytes", p->as);
        fl_put_bytes(out, "data_bytes", p->data);
        fl_put_bytes(out, "cgroup_bytes", p->group);
        fputc('}', out);
    }
    fputs("]}\n", out);
}
