/* The check on one screen, 80 columns wide. */
#include "launcher/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, INDENT = 12 };

/* Words after a label, wrapped. */
struct line {
    FILE *out;
    size_t at; /* columns used */
};

static void begin(struct line *l, FILE *out, const char *label)
{
    *l = (struct line){out, INDENT};
    fprintf(out, "%-*s", INDENT, label);
}

static void word(struct line *l, const char *text)
{
    size_t len = strlen(text);

    if (l->at > INDENT && l->at + 1 + len > WIDTH) {
        fprintf(l->out, "\n%*s", INDENT, "");
        l->at = INDENT;
    }
    l->at += len + (l->at > INDENT);
    fprintf(l->out, "%s%s", l->at > INDENT + len ? " " : "", text);
}

static void words(struct line *l, const char *text)
{
    char *copy = strdup(text), *rest = NULL;

    for (char *w = copy != NULL ? strtok_r(copy, " ", &rest) : NULL; w != NULL;
         w = strtok_r(NULL, " ", &rest)) {
        word(l, w);
    }
    free(copy);
}

static void end(struct line *l)
{
    fputc('\n', l->out);
}

__attribute__((format(printf, 3, 4))) static void row(FILE *out, const char *label,
                                                      const char *form, ...)
{
    char *text = NULL;
    struct line l;
    va_list args;

    va_start(args, form);
    if (vasprintf(&text, form, args) >= 0) {
        begin(&l, out, label);
        words(&l, text);
        end(&l);
        free(text);
    }
    va_end(args);
}

/* 7.8G; "none" without a bound. In one of eight places, so that a row may have several. */
static const char *size(uint64_t bytes)
{
    static char text[8][16];
    static unsigned at;
    static const char unit[] = "BKMGTPE";
    double v = (double)bytes;
    int i = 0;

    if (bytes == FL_UNLIMITED) {
        return "none";
    }
    for (; v >= 1024; i++) {
        v /= 1024;
    }
    at = (at + 1) % 8;
    snprintf(text[at], sizeof text[at], v < 10 && i > 0 ? "%.1f%c" : "%.0f%c", v, unit[i]);
    return text[at];
}

static void print_options(const struct fl_check *c, FILE *out)
{
    static const char *const origins[] = {"environment", "automatic", "default"};
    static const char *const labels[] = {"set", "automatic", "default"};
    const size_t prefix = strlen("FAULTLESS_");

    for (size_t k = 0; k < 3; k++) {
        struct line l;
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
                begin(&l, out, labels[k]);
                any = true;
            }
            snprintf(text, sizeof text, strchr(o->value, ' ') != NULL ? "%s='%s'" : "%s=%s",
                     o->name + prefix, o->value);
            word(&l, text);
        }
        if (any) {
            end(&l);
        }
    }
}

static void print_target(const struct fl_check *c, FILE *out)
{
    static const char *const kinds[] = {"dynamic", "static", "of another architecture",
                                        "not an ELF program"};
    const struct fl_target *t = &c->target;

    row(out, "command", "%s%s%s: %s%s%s", t->script, t->script[0] != '\0' ? ", run by " : "",
        t->path, kinds[t->kind], t->raised ? ", with raised privileges" : "",
        t->own_malloc ? ", with its own malloc" : "");
}

static void print_preloads(const struct fl_check *c, FILE *out)
{
    char *copy = c->preloads != NULL ? strdup(c->preloads) : NULL, *rest = NULL;
    struct line l;

    for (char *w = copy != NULL ? strtok_r(copy, ": ", &rest) : NULL; w != NULL;
         w = strtok_r(NULL, ": ", &rest)) {
        begin(&l, out, "preloaded");
        words(&l, w);
        words(&l,
              fl_target_has_malloc(w) ? "has a malloc: small requests are its" : "after faultless");
        end(&l);
    }
    free(copy);
}

static void print_host(const struct fl_check *c, FILE *out)
{
    const struct fl_host *h = &c->host;
    const struct fl_host_memory *m = &h->memory;

    row(out, "kernel",
        "%s: populate %s, userfaultfd %s, its move %s, for system calls too %s, io_uring %s",
        h->kernel, fl_host_answer(h->calls.populate), fl_host_answer(h->calls.uffd),
        fl_host_answer(h->calls.uffd_move), fl_host_answer(h->calls.uffd_all),
        fl_host_answer(h->calls.uring));
    row(out, "huge pages", "%s, of %s%s", h->thp[0] != '\0' ? h->thp : "none", size(h->huge),
        h->thp_refused ? ", but not for this process" : "");
    row(out, "nodes", "%s; allowed %s, policy %s", h->nodes[0] != '\0' ? h->nodes : "0",
        h->allowed[0] != '\0' ? h->allowed + strspn(h->allowed, " \t") : "all", h->policy);
    row(out, "memory",
        "%s, available %s; limits: control group %s, address space %s, data %s, locked %s; "
        "overcommit %d",
        size(m->total), size(m->available), size(m->cgroup), size(m->as), size(m->data),
        size(m->memlock), m->overcommit);
    row(out, "sandbox", "%s", h->seccomp == 0 ? "none" : "a seccomp filter");
    row(out, "GPU", "%u%s%s", h->gpus, h->driver[0] != '\0' ? "; " : "", h->driver);
}

void fl_check_print(const struct fl_check *c, FILE *out)
{
    static const char *const moves[] = {"pages move by userfaultfd", "pages move by mremap",
                                        "pages do not move"};

    row(out, "faultless", "%s, %s", FL_VERSION, c->library);
    print_host(c, out);
    if (c->command != NULL) {
        print_target(c, out);
    }
    print_preloads(c, out);
    print_options(c, out);
    if (c->obstacle != NULL) {
        row(out, "verdict", "not served: %s", c->obstacle);
    } else {
        row(out, "verdict", "served, %s", moves[c->probe.rung < 2 ? c->probe.rung : 2]);
    }
    for (unsigned i = 0; i < c->nadvice; i++) {
        row(out, i == 0 ? "better with" : "", "- %s", c->advice[i]);
    }
}
