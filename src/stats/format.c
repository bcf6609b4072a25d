/* The two printed forms of a snapshot. */
#include "stats/stats.h"

void fl_stats_format_table(const struct fl_stats_values *v, int pid, struct fl_text *t)
{
#define X(field, kind, text)                                                                       \
    fl_stats_format_prefix(pid, NULL, t);                                                          \
    fl_text_str(t, #field " ");                                                                    \
    fl_text_u64(t, v->field);                                                                      \
    fl_text_str(t, " (" text ")\n");
    FL_STATS_FIELDS(X)
#undef X
}

void fl_stats_quote(struct fl_text *t, const char *s)
{
    fl_text_str(t, "\"");
    for (; *s != '\0'; s++) {
        char c[3] = {*s, '\0', '\0'};
        if (*s == '"' || *s == '\\') {
            c[0] = '\\';
            c[1] = *s;
        }
        if ((unsigned char)*s >= ' ') {
            fl_text_str(t, c);
        }
    }
    fl_text_str(t, "\"");
}

static void append_pair(struct fl_text *t, const char *before, uint64_t value, const char *behind)
{
    fl_text_str(t, before);
    fl_text_u64(t, value);
    fl_text_str(t, behind);
}

void fl_stats_format_nodes(const struct fl_stats_nodes *n, int pid, struct fl_text *t)
{
    for (unsigned i = 0; i < n->n; i++) {
        const struct fl_stats_node *node = &n->node[i];
        fl_stats_format_prefix(pid, NULL, t);
        append_pair(t, "node ", node->id, ": ");
        append_pair(t, "", node->extents, " bytes populated, ");
        append_pair(t, "", node->free, " of these free; stock ");
        append_pair(t, "", node->stock, " bytes\n");
    }
    if (n->n != 0) {
        fl_stats_format_prefix(pid, NULL, t);
        append_pair(t, "several nodes: ", n->several, " bytes populated\n");
    }
}

void fl_stats_format_gpus(const struct fl_stats_gpus *all, int pid, struct fl_text *t)
{
    for (unsigned i = 0; i < all->n; i++) {
        const struct fl_stats_gpu *g = &all->gpu[i];
#define X(field, kind, text)                                                                       \
    fl_stats_format_prefix(pid, NULL, t);                                                          \
    append_pair(t, "GPU", g->id, " " #field " ");                                                  \
    append_pair(t, "", g->field, "\n");
        FL_STATS_GPU_FIELDS(X)
#undef X
    }
}

static void append_resident(struct fl_text *t, const char *of, uint64_t bytes, uint64_t resident)
{
    append_pair(t, of, bytes, " bytes, ");
    append_pair(t, "", resident, " of these in memory\n");
}

void fl_stats_format_residency(const struct fl_residency_values *v, struct fl_text *t)
{
    append_resident(t, "faultless: live: ", v->live_bytes, v->live_resident_bytes);
    append_resident(t, "faultless: free: ", v->free_bytes, v->free_resident_bytes);
    append_resident(t, "faultless: stock: ", v->stock_bytes, v->stock_resident_bytes);
    append_resident(t, "faultless: tables: ", v->table_bytes, v->table_resident_bytes);
    if (v->unknown_bytes != 0) {
        append_pair(t, "faultless: not known whether in memory: ", v->unknown_bytes, " bytes\n");
    }
}

static void append_nodes(struct fl_text *t, const struct fl_stats_nodes *n)
{
    fl_text_str(t, ", \"nodes\": [");
    for (unsigned i = 0; i < n->n; i++) {
        const struct fl_stats_node *node = &n->node[i];
        append_pair(t, i == 0 ? "{\"node\": " : ", {\"node\": ", node->id, ", ");
        append_pair(t, "\"extent_bytes\": ", node->extents, ", ");
        append_pair(t, "\"free_bytes\": ", node->free, ", ");
        append_pair(t, "\"node_stock_bytes\": ", node->stock, "}");
    }
    append_pair(t, "], \"several_nodes_bytes\": ", n->several, "");
}

static void append_gpus(struct fl_text *t, const struct fl_stats_gpus *all)
{
    fl_text_str(t, ", \"gpus\": [");
    for (unsigned i = 0; i < all->n; i++) {
        const struct fl_stats_gpu *g = &all->gpu[i];
        append_pair(t, i == 0 ? "{\"gpu\": " : ", {\"gpu\": ", g->id, "");
#define X(field, kind, text) append_pair(t, ", \"" #field "\": ", g->field, "");
        FL_STATS_GPU_FIELDS(X)
#undef X
        fl_text_str(t, "}");
    }
    fl_text_str(t, "]");
}

void fl_stats_format_json(const struct fl_stats_values *v, const struct fl_stats_nodes *n,
                          const struct fl_stats_gpus *g, int pid, const char *program,
                          struct fl_text *t)
{
    fl_text_str(t, "{\"pid\": ");
    fl_text_u64(t, (uint64_t)pid);
    fl_text_str(t, ", \"program\": ");
    fl_stats_quote(t, program);
#define X(field, kind, text)                                                                       \
    fl_text_str(t, ", \"" #field "\": ");                                                          \
    fl_text_u64(t, v->field);
    FL_STATS_FIELDS(X)
#undef X
    if (n != NULL && n->n != 0) {
        append_nodes(t, n);
    }
    if (g != NULL && g->n != 0) {
        append_gpus(t, g);
    }
    fl_text_str(t, "}\n");
}
