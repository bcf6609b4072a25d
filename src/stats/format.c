/* The two printed forms of a snapshot. */
#include "stats/stats.h"

void fl_stats_format_table(const struct fl_stats_values *v, struct fl_text *t)
{
#define X(field, text)                                                                             \
    fl_text_str(t, "faultless: " #field " ");                                                      \
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

void fl_stats_format_json(const struct fl_stats_values *v, int pid, const char *program,
                          struct fl_text *t)
{
    fl_text_str(t, "{\"pid\": ");
    fl_text_u64(t, (uint64_t)pid);
    fl_text_str(t, ", \"program\": ");
    fl_stats_quote(t, program);
#define X(field, text)                                                                             \
    fl_text_str(t, ", \"" #field "\": ");                                                          \
    fl_text_u64(t, v->field);
    FL_STATS_FIELDS(X)
#undef X
    fl_text_str(t, "}\n");
}
