/* A snapshot in Prometheus's text format, as node_exporter's textfile collector reads it.
 *
 * Source: "Exposition formats", the Prometheus project; node_exporter's README, "Textfile
 * Collector". */
#include "stats/stats.h"

#include <string.h>

static void append_label(struct fl_text *t, const char *s)
{
    for (; *s != '\0'; s++) {
        char c[3] = {*s, '\0', '\0'};
        if (*s == '"' || *s == '\\' || *s == '\n') {
            c[0] = '\\';
            c[1] = (char)(*s == '\n' ? 'n' : *s);
        }
        fl_text_str(t, c);
    }
}

struct sample {
    const char *name, *type, *help;
    uint64_t value;
};

static void append_sample(struct fl_text *t, const struct sample *s, const char *labels)
{
    bool counts = strcmp(s->type, "counter") == 0;
    const char *end = counts ? "_total" : "";
    const char *part[] = {"# HELP faultless_", s->name, end, " ",    s->help, "\n",
                          "# TYPE faultless_", s->name, end, " ",    s->type, "\n",
                          "faultless_",        s->name, end, labels, " "};

    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        fl_text_str(t, part[i]);
    }
    fl_text_u64(t, s->value);
    fl_text_str(t, "\n");
}

void fl_stats_format_prometheus(const struct fl_stats_values *v, int pid, const char *program,
                                struct fl_text *t)
{
    static const char COUNTER[] = "counter", GAUGE[] = "gauge";
    char labels[128];
    struct fl_text l = fl_text_on(labels, sizeof labels);

    fl_text_str(&l, "{pid=\"");
    fl_text_u64(&l, (uint64_t)pid);
    fl_text_str(&l, "\",program=\"");
    append_label(&l, program);
    fl_text_str(&l, "\"}");
    const struct sample sample[] = {
#define X(field, kind, text) {#field, kind, text, v->field},
        FL_STATS_FIELDS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof sample / sizeof sample[0]; i++) {
        append_sample(t, &sample[i], labels);
    }
}
