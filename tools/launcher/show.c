/* The check on one screen, 80 columns wide. */
#include "launcher/check.h"
#include "launcher/lines.h"

#include <stdlib.h>
#include <string.h>

static void print_options(const struct fl_check *c, FILE *out)
{
    static const char *const origins[] = {"environment", "automatic", "default"};
    static const char *const labels[] = {"set", "automatic", "default"};
    const size_t prefix = strlen("FAULTLESS_");

    for (size_t k = 0; k < 3; k++) {
        struct fl_line l;
        bool any = false;
        for (unsigned i = 0; i < c->probe.noptions; i++) {
            const struct fl_probe_option *o = &c->probe.option[i];
            bool gpu = strncmp(o->name + prefix, "GPU_", 4) == 0;
            bool shown = strncmp(o->origin, origins[k], strlen(origins[k])) == 0;
            char text[512];
            if (!shown || (gpu && k != 0) || (k == 2 && o->value[0] == '\0')) {
                continue; /* the GPU's are shown when they are set, texts likewise */
            }
            if (!any) {
                fl_line_begin(&l, out, labels[k]);
                any = true;
            }
            snprintf(text, sizeof text, strchr(o->value, ' ') != NULL ? "%s='%s'" : "%s=%s",
                     o->name + prefix, o->value);
            fl_line_word(&l, text);
        }
        if (any) {
            fl_line_end(&l);
        }
    }
}

static void print_target(const struct fl_check *c, FILE *out)
{
    static const char *const kinds[] = {"dynamic", "static", "of another architecture",
                                        "not an ELF program"};
    const struct fl_target *t = &c->target;
    char text[640];

    fl_row(out, "command", "%s%s%s: %s%s%s", t->script, t->script[0] != '\0' ? ", run by " : "",
           t->path, kinds[t->kind], t->raised ? ", with raised privileges" : "",
           t->own_malloc ? ", with its own malloc" : "");
    for (unsigned i = 0; i < t->nown; i++) {
        if (fl_allocators_say(&t->own[i], fl_target_value, NULL, text, sizeof text)) {
            fl_row(out, "own memory", "%s", text);
        }
    }
}

static void print_preloads(const struct fl_check *c, FILE *out)
{
    char *copy = c->preloads != NULL ? strdup(c->preloads) : NULL, *rest = NULL;
    struct fl_line l;

    for (char *w = copy != NULL ? strtok_r(copy, ": ", &rest) : NULL; w != NULL;
         w = strtok_r(NULL, ": ", &rest)) {
        fl_line_begin(&l, out, "preloaded");
        fl_line_words(&l, w);
        fl_line_words(&l, fl_target_has_malloc(w) ? "has a malloc: small requests are its"
                                                  : "after faultless");
        fl_line_end(&l);
    }
    free(copy);
}

static void print_host(const struct fl_check *c, FILE *out)
{
    const struct fl_host *h = &c->host;
    const struct fl_host_memory *m = &h->memory;

    fl_row(out, "kernel",
           "%s: populate %s, userfaultfd %s, its move %s, for system calls too %s, io_uring %s",
           h->kernel, fl_host_answer(h->calls.populate), fl_host_answer(h->calls.uffd),
           fl_host_answer(h->calls.uffd_move), fl_host_answer(h->calls.uffd_all),
           fl_host_answer(h->calls.uring));
    fl_row(out, "huge pages", "%s, of %s%s", h->thp[0] != '\0' ? h->thp : "none", fl_size(h->huge),
           h->thp_refused ? ", but not for this process" : "");
    fl_row(out, "nodes", "%s; allowed %s, policy %s", h->nodes[0] != '\0' ? h->nodes : "0",
           h->allowed[0] != '\0' ? h->allowed + strspn(h->allowed, " \t") : "all", h->policy);
    fl_row(out, "memory",
           "%s, available %s; limits: control group %s, address space %s, data %s, locked %s; "
           "overcommit %d",
           fl_size(m->total), fl_size(m->available), fl_size(m->cgroup), fl_size(m->as),
           fl_size(m->data), fl_size(m->memlock), m->overcommit);
    fl_row(out, "sandbox", "%s", h->seccomp == 0 ? "none" : "a seccomp filter");
    fl_row(out, "GPU", "%u%s%s", h->gpus, h->driver[0] != '\0' ? "; " : "", h->driver);
}

void fl_check_print(const struct fl_check *c, FILE *out)
{
    static const char *const moves[] = {"pages move by userfaultfd", "pages move by mremap",
                                        "pages do not move"};

    fl_row(out, "faultless", "%s, %s", FL_VERSION, c->library);
    print_host(c, out);
    if (c->command != NULL) {
        print_target(c, out);
    }
    print_preloads(c, out);
    print_options(c, out);
    if (c->obstacle != NULL) {
        fl_row(out, "verdict", "not served: %s", c->obstacle);
    } else {
        fl_row(out, "verdict", "%s, %s",
               fl_target_is_part(&c->target) ? "served in part" : "served",
               moves[c->probe.rung < 2 ? c->probe.rung : 2]);
    }
    for (unsigned i = 0; i < c->nadvice; i++) {
        fl_row(out, i == 0 ? "better with" : "", "- %s", c->advice[i]);
    }
}
