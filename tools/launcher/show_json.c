/* The same for programs: one JSON object. Its "schema" grows when a member changes its meaning. */
#include "launcher/check.h"

#include <inttypes.h>
#include <string.h>

enum { SCHEMA = 1 };

/* Bytes that are no UTF-8 become '?': a path may have any. */
static size_t utf8_len(const unsigned char *s)
{
    size_t n = *s < 0x80                 ? 1
               : *s >= 0xc2 && *s < 0xe0 ? 2
               : *s >= 0xe0 && *s < 0xf0 ? 3
               : *s >= 0xf0 && *s < 0xf5 ? 4
                                         : 0;

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (n == 3 && ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0))) ||
               (n == 4 && ((*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] >= 0x90)));
    return bad ? 0 : n;
}

static void quote(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        size_t n = utf8_len(s);
        if (*s == '"' || *s == '\\') {
            fputc('\\', out);
        }
        if (*s < ' ') {
            fprintf(out, "\\u%04x", *s);
        } else if (n == 0) {
            fputc('?', out);
        } else {
            fwrite(s, 1, n, out);
        }
        s += n != 0 ? n : 1;
    }
    fputc('"', out);
}

static void member(FILE *out, const char *name, const char *text)
{
    fprintf(out, ", \"%s\": ", name);
    if (text != NULL && text[0] != '\0') {
        quote(out, text);
    } else {
        fputs("null", out);
    }
}

static void bytes(FILE *out, const char *name, uint64_t value)
{
    if (value == FL_UNLIMITED) {
        fprintf(out, ", \"%s\": null", name);
    } else {
        fprintf(out, ", \"%s\": %" PRIu64, name, value);
    }
}

static void truth(FILE *out, const char *name, bool value)
{
    fprintf(out, ", \"%s\": %s", name, value ? "true" : "false");
}

static void list(FILE *out, const char *name, const char *const text[], unsigned n)
{
    fprintf(out, ", \"%s\": [", name);
    for (unsigned i = 0; i < n; i++) {
        fputs(i == 0 ? "" : ", ", out);
        quote(out, text[i]);
    }
    fputc(']', out);
}

static void print_host(const struct fl_host *h, FILE *out)
{
    const struct fl_host_memory *m = &h->memory;

    fputs(", \"kernel\": {\"release\": ", out);
    quote(out, h->kernel);
    member(out, "populate", fl_host_answer(h->calls.populate));
    member(out, "userfaultfd", fl_host_answer(h->calls.uffd));
    member(out, "userfaultfd_move", fl_host_answer(h->calls.uffd_move));
    member(out, "userfaultfd_system_calls", fl_host_answer(h->calls.uffd_all));
    member(out, "io_uring", fl_host_answer(h->calls.uring));
    fprintf(out, "}, \"huge_pages\": {\"bytes\": %" PRIu64, h->huge);
    member(out, "mode", h->thp);
    truth(out, "refused", h->thp_refused);
    fprintf(out, "}, \"numa\": {\"policy\": ");
    quote(out, h->policy);
    member(out, "nodes", h->nodes);
    member(out, "allowed", h->allowed + strspn(h->allowed, " \t"));
    fprintf(out, "}, \"memory\": {\"overcommit\": %d", m->overcommit);
    bytes(out, "total_bytes", m->total);
    bytes(out, "available_bytes", m->available);
    bytes(out, "cgroup_bytes", m->cgroup);
    bytes(out, "address_space_bytes", m->as);
    bytes(out, "data_bytes", m->data);
    bytes(out, "locked_bytes", m->memlock);
    fprintf(out, "}, \"seccomp\": %d, \"gpu\": {\"devices\": %u", h->seccomp, h->gpus);
    member(out, "driver", h->driver);
    fputc('}', out);
}

static void print_target(const struct fl_check *c, FILE *out)
{
    static const char *const kinds[] = {"dynamic", "static", "foreign", "unknown"};
    const struct fl_target *t = &c->target;

    if (c->command == NULL) {
        fputs(", \"command\": null", out);
        return;
    }
    fputs(", \"command\": {\"name\": ", out);
    quote(out, c->command);
    member(out, "path", t->path);
    member(out, "script", t->script);
    member(out, "kind", kinds[t->kind]);
    truth(out, "raised", t->raised);
    truth(out, "own_malloc", t->own_malloc);
    fputc('}', out);
}

static void print_options(const struct fl_probe *p, FILE *out)
{
    fputs(", \"options\": [", out);
    for (unsigned i = 0; i < p->noptions; i++) {
        fputs(i == 0 ? "{\"name\": " : ", {\"name\": ", out);
        quote(out, p->option[i].name);
        fputs(", \"value\": ", out);
        quote(out, p->option[i].value);
        fputs(", \"origin\": ", out);
        quote(out, p->option[i].origin);
        fputc('}', out);
    }
    fputc(']', out);
}

void fl_check_print_json(const struct fl_check *c, FILE *out)
{
    static const char *const moves[] = {"userfaultfd", "mremap", "none"};

    fprintf(out, "{\"schema\": %d", SCHEMA);
    member(out, "version", FL_VERSION);
    member(out, "library", c->library);
    truth(out, "served", c->obstacle == NULL);
    member(out, "obstacle", c->obstacle);
    member(out, "moves", moves[c->probe.rung < 2 ? c->probe.rung : 2]);
    print_host(&c->host, out);
    print_target(c, out);
    member(out, "preloads", c->preloads);
    print_options(&c->probe, out);
    list(out, "notes", c->probe.note, c->probe.nnotes);
    list(out, "advice", c->advice, c->nadvice);
    fputs("}\n", out);
}
