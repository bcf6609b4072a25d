/* A snapshot in Prometheus's text format, as node_exporter's textfile collector reads it.
 *
 * Source: "Exposition formats", the Prometheus project; node_exporter's README, "Textfile
 * Collector". */
#include "stats/stats.h"

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

static const char COUNTER[] = "counter", GAUGE[] = "gauge";

struct metric {
    const char *before, *name; /* what its name begins with; and the rest of it */
    const char *type, *help;
};

static void append_all(struct fl_text *t, const char *const part[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fl_text_str(t, part[i]);
    }
}

static const char *end_of(const struct metric *m)
{
    return m->type == COUNTER ? "_total" : "";
}

static void append_head(struct fl_text *t, const struct metric *m)
{
    const char *part[] = {"# HELP ", m->before, m->name, end_of(m), " ", m->help, "\n",
                          "# TYPE ", m->before, m->name, end_of(m), " ", m->type, "\n"};

    append_all(t, part, sizeof part / sizeof part[0]);
}

static void append_value(struct fl_text *t, const struct metric *m, const char *labels,
                         uint64_t value)
{
    const char *part[] = {m->before, m->name, end_of(m), labels, " "};

    append_all(t, part, sizeof part / sizeof part[0]);
    fl_text_u64(t, value);
    fl_text_str(t, "\n");
}

/* `gpu`: -1, no such label. */
static void format_labels(int pid, const char *program, int gpu, char *out, size_t size)
{
    struct fl_text l = fl_text_on(out, size);

    fl_text_str(&l, "{pid=\"");
    fl_text_u64(&l, (uint64_t)pid);
    fl_text_str(&l, "\",program=\"");
    append_label(&l, program);
    if (gpu >= 0) {
        fl_text_str(&l, "\",gpu=\"");
        fl_text_u64(&l, (uint64_t)gpu);
    }
    fl_text_str(&l, "\"}");
}

/* All lines of a metric stand together, as the format asks. */
static void append_gpus(struct fl_text *t, const struct fl_stats_gpus *g, int pid,
                        const char *program)
{
    static const struct metric metrics[] = {
#define X(field, kind, text) {"faultless_gpu_", #field, kind, text},
        FL_STATS_GPU_FIELDS(X)
#undef X
    };
    char labels[160];

    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
        append_head(t, &metrics[m]);
        for (unsigned i = 0; i < g->n; i++) {
            const uint64_t value[] = {
#define X(field, kind, text) g->gpu[i].field,
                FL_STATS_GPU_FIELDS(X)
#undef X
            };
            format_labels(pid, program, (int)g->gpu[i].id, labels, sizeof labels);
            append_value(t, &metrics[m], labels, value[m]);
        }
    }
}

void fl_stats_format_prometheus(const struct fl_stats_values *v, const struct fl_stats_gpus *g,
                                int pid, const char *program, struct fl_text *t)
{
    static const struct metric metrics[] = {
#define X(field, kind, text) {"faultless_", #field, kind, text},
        FL_STATS_FIELDS(X)
#undef X
    };
    const uint64_t value[] = {
#define X(field, kind, text) v->field,
        FL_STATS_FIELDS(X)
#undef X
    };
    char labels[160];

    format_labels(pid, program, -1, labels, sizeof labels);
    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
        append_head(t, &metrics[m]);
        append_value(t, &metrics[m], labels, value[m]);
    }
    if (g->n != 0) {
        append_gpus(t, g, pid, program);
    }
}
