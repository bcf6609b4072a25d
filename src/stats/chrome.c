/* Chrome's trace events as text. */
#include "stats/stats.h"

static void append_us(struct fl_text *t, uint64_t ns)
{
    char part[4] = {(char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10), (char)('0' + ns % 10),
                    '\0'};

    fl_text_u64(t, ns / 1000);
    fl_text_str(t, ".");
    fl_text_str(t, part);
}

static void append_i64(struct fl_text *t, int64_t v)
{
    if (v < 0) {
        fl_text_str(t, "-");
    }
    fl_text_u64(t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void append_args(struct fl_text *t, const struct fl_chrome_event *e)
{
    for (size_t i = 0; i < e->args; i++) {
        fl_text_str(t, i == 0 ? "" : ",");
        fl_stats_quote(t, e->arg[i].name);
        fl_text_str(t, ":");
        if (e->arg[i].text != NULL) {
            fl_stats_quote(t, e->arg[i].text);
        } else {
            append_i64(t, e->arg[i].value);
        }
    }
}

void fl_chrome_head(struct fl_text *t)
{
    fl_text_str(t, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

void fl_chrome_event(struct fl_text *t, const struct fl_chrome_event *e, bool first)
{
    const char phase[2] = {e->phase, '\0'};

    fl_text_str(t, first ? "\n{\"ph\":\"" : ",\n{\"ph\":\"");
    fl_text_str(t, phase);
    fl_text_str(t, "\",\"name\":");
    fl_stats_quote(t, e->name);
    fl_text_str(t, ",\"pid\":");
    append_i64(t, e->pid);
    fl_text_str(t, ",\"tid\":");
    append_i64(t, e->tid);
    if (e->phase != 'M') {
        fl_text_str(t, ",\"ts\":");
        append_us(t, e->at_ns);
    }
    if (e->phase == 'X') {
        fl_text_str(t, ",\"dur\":");
        append_us(t, e->lasts_ns);
    }
    fl_text_str(t, e->phase == 'i' ? ",\"s\":\"p\",\"args\":{" : ",\"args\":{");
    append_args(t, e);
    fl_text_str(t, "}}");
}

void fl_chrome_tail(struct fl_text *t)
{
    fl_text_str(t, "\n]}\n");
}
