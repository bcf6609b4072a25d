/* The same for programs: one JSON object. Its "schema" grows when a member changes its meaning. */
#include "launcher/check.h"
#include "launcher/json.h"

#include <inttypes.h>
#include <string.h>

enum { SCHEMA = 1 };

static void print_host(const struct fl_host *h, FILE *out)
{
    const struct fl_host_memory *m = &h->memory;

    fputs(", \"kernel\": {\"release\": ", out);
    fl_put_quote(out, h->kernel);
    fl_put_member(out, "populate", fl_host_answer(h->calls.populate));
    fl_put_member(out, "userfaultfd", fl_host_answer(h->calls.uffd));
    fl_put_member(out, "userfaultfd_move", fl_host_answer(h->calls.uffd_move));
    fl_put_member(out, "userfaultfd_system_calls", fl_host_answer(h->calls.uffd_all));
    fl_put_member(out, "io_uring", fl_host_answer(h->calls.uring));
    fprintf(out, "}, \"huge_pages\": {\"bytes\": %" PRIu64, h->huge);
    fl_put_member(out, "mode", h->thp);
    fl_put_truth(out, "refused", h->thp_refused);
    fprintf(out, "}, \"numa\": {\"policy\": ");
    fl_put_quote(out, h->policy);
    fl_put_member(out, "nodes", h->nodes);
    fl_put_member(out, "allowed", h->allowed + strspn(h->allowed, " \t"));
    fprintf(out, "}, \"memory\": {\"overcommit\": %d", m->overcommit);
    fl_put_bytes(out, "total_bytes", m->total);
    fl_put_bytes(out, "available_bytes", m->available);
    fl_put_bytes(out, "cgroup_bytes", m->cgroup);
    fl_put_bytes(out, "address_space_bytes", m->as);
    fl_put_bytes(out, "data_bytes", m->data);
    fl_put_bytes(out, "locked_bytes", m->memlock);
    fprintf(out, "}, \"seccomp\": %d, \"gpu\": {\"devices\": %u", h->seccomp, h->gpus);
    fl_put_member(out, "driver", h->driver);
    fputc('}', out);
}

static void print_target(const struct fl_check *c, FILE *out)
{
    static const char *const kinds[] = {"dynamic", "static", "foreign", "unknown"};
    const struct fl_target *t = &c->target;
    const char *own[FL_TARGET_OWN];
    char text[FL_TARGET_OWN][640];
    unsigned n = 0;

    if (c->command == NULL) {
        fputs(", \"command\": null", out);
        return;
    }
    fputs(", \"command\": {\"name\": ", out);
    fl_put_quote(out, c->command);
    fl_put_member(out, "path", t->path);
    fl_put_member(out, "script", t->script);
    fl_put_member(out, "kind", kinds[t->kind]);
    fl_put_truth(out, "raised", t->raised);
    fl_put_truth(out, "own_malloc", t->own_malloc);
    for (unsigned i = 0; i < t->nown; i++) {
        if (fl_allocators_say(&t->own[i], fl_target_value, NULL, text[n], sizeof text[n])) {
            own[n] = text[n];
            n++;
        }
    }
    fl_put_list(out, "own", own, n);
    fputc('}', out);
}

static void print_options(const struct fl_probe *p, FILE *out)
{
    fputs(", \"options\": [", out);
    for (unsigned i = 0; i < p->noptions; i++) {
        fputs(i == 0 ? "{\"name\": " : ", {\"name\": ", out);
        fl_put_quote(out, p->option[i].name);
        fputs(", \"value\": ", out);
        fl_put_quote(out, p->option[i].value);
        fputs(", \"origin\": ", out);
        fl_put_quote(out, p->option[i].origin);
        fputc('}', out);
    }
    fputc(']', out);
}

void fl_check_print_json(const struct fl_check *c, FILE *out)
{
    static const char *const moves[] = {"userfaultfd", "mremap", "none"};

    fprintf(out, "{\"schema\": %d", SCHEMA);
    fl_put_member(out, "version", FL_VERSION);
    fl_put_member(out, "library", c->library);
    fl_put_truth(out, "served", c->obstacle == NULL);
    fl_put_member(out, "obstacle", c->obstacle);
    fl_put_member(out, "moves", moves[c->probe.rung < 2 ? c->probe.rung : 2]);
    print_host(&c->host, out);
    print_target(c, out);
    fl_put_member(out, "preloads", c->preloads);
    print_options(&c->probe, out);
    fl_put_list(out, "notes", c->probe.note, c->probe.nnotes);
    fl_put_list(out, "advice", c->advice, c->nadvice);
    fputs("}\n", out);
}
