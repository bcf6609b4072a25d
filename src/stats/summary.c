/* One line a process: what was served, and what it would have cost to map each request anew,
 * estimated from what new memory costs on this machine. */
#include "stats/stats.h"

/* With one decimal where it is below ten: 1.2G. */
static void append_short(struct fl_text *t, uint64_t v, uint64_t base, const char *const unit[])
{
    uint64_t whole = v, rest = 0;
    unsigned i = 0;

    while (whole >= 10 * base || (i > 0 && whole >= base)) {
        rest = whole % base;
        whole /= base;
        i++;
    }
    uint64_t tenths = (rest * 10 + base / 2) / base; /* 10: the next whole number */
    whole += i > 0 && (whole < 10 ? tenths == 10 : rest >= base / 2);
    tenths %= 10;
    fl_text_u64(t, whole);
    if (i > 0 && whole < 10) {
        fl_text_str(t, ".");
        fl_text_u64(t, tenths);
    }
    fl_text_str(t, unit[i]);
}

static void append_count(struct fl_text *t, uint64_t v)
{
    static const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};

    append_short(t, v, 1000, unit);
}

static void append_bytes(struct fl_text *t, uint64_t v)
{
    static const char *const unit[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};

    append_short(t, v, 1024, unit);
}

static void append_time(struct fl_text *t, uint64_t ns)
{
    static const char *const unit[] = {" ns", " us", " ms", " s", "k s", "M s", "G s"};

    append_short(t, ns, 1000, unit);
}

/* Handed out with their pages in memory already: less all that was brought in, for whatever. */
static uint64_t reused_bytes(const struct fl_stats_values *v)
{
    uint64_t fresh = v->lazy_bytes + v->populate_bytes;

    return v->served_bytes - (fresh < v->served_bytes ? fresh : v->served_bytes);
}

static uint64_t part(uint64_t bytes, uint64_t of, uint64_t value)
{
    return (uint64_t)((double)bytes / (double)of * (double)value);
}

static void append_saved(struct fl_text *t, const struct fl_summary *s)
{
    uint64_t reused = reused_bytes(s->values);

    if (s->sample_bytes == 0) {
        return;
    }
    fl_text_str(t, ", ");
    append_count(t, part(reused, s->sample_bytes, s->sample_faults));
    fl_text_str(t, " page faults and ");
    append_time(t, part(reused, s->sample_bytes, s->sample_ns));
    fl_text_str(t, " less than if each were mapped anew (estimated)");
}

static void append_method(struct fl_text *t, uint64_t rung)
{
    static const char *const how[] = {"pages move by userfaultfd", "pages move by mremap",
                                      "pages do not move"};

    fl_text_str(t, ", ");
    fl_text_str(t, how[rung < 2 ? rung : 2]);
}

static void append_plan(struct fl_text *t, const struct fl_stats_values *v)
{
    uint64_t asked = v->plan_hits + v->plan_misses;

    if (v->plan_steps != 0 && asked != 0) {
        fl_text_str(t, ", ");
        append_count(t, v->plan_steps);
        fl_text_str(t, " steps planned (");
        fl_text_u64(t, part(v->plan_hits, asked, 100));
        fl_text_str(t, " % hits)");
    }
}

/* Two peaks, which need not have been at one time. hugetlb pages are in ours alone. */
static void append_peak(struct fl_text *t, const struct fl_summary *s)
{
    uint64_t ours = s->values->populated_peak_bytes;

    fl_text_str(t, ", peak ");
    append_bytes(t, ours);
    if (s->resident_peak > ours) {
        fl_text_str(t, " of the process's ");
        append_bytes(t, s->resident_peak);
    }
}

void fl_stats_format_prefix(int pid, const char *program, struct fl_text *t)
{
    fl_text_str(t, "faultless");
    if (pid != 0) {
        fl_text_str(t, "[");
        fl_text_u64(t, (uint64_t)pid);
        fl_text_str(t, "]");
    }
    if (program != NULL) {
        fl_text_str(t, " ");
        for (; *program != '\0'; program++) { /* one line, whatever it calls itself */
            char c[2] = {*program, '\0'};
            fl_text_str(t, (unsigned char)c[0] < ' ' ? "?" : c);
        }
    }
    fl_text_str(t, ": ");
}

void fl_stats_format_summary(const struct fl_summary *s, struct fl_text *t)
{
    const struct fl_stats_values *v = s->values;

    fl_stats_format_prefix(s->pid, s->program, t);
    if (v->active == 0 && s->shadowed_by == NULL) {
        fl_text_str(t, "not active: every request went to the next allocator\n");
        return;
    }
    if (v->requests == 0 && s->shadowed_by != NULL) {
        fl_text_str(t, "not served: the program's malloc is that of ");
        fl_text_str(t, s->shadowed_by);
        fl_text_str(t, ", which comes first\n");
        return;
    }
    if (v->requests == 0) {
        fl_text_str(t, "nothing done: no request of ");
        fl_text_size(t, s->threshold);
        fl_text_str(t, " or more came here\n");
        return;
    }
    append_count(t, v->requests);
    fl_text_str(t, v->requests == 1 ? " large request" : " large requests");
    append_saved(t, s);
    append_method(t, v->rung);
    if (s->thp_refused) {
        fl_text_str(t, ", no huge pages (PR_SET_THP_DISABLE, by the program or what started it)");
    }
    append_plan(t, v);
    append_peak(t, s);
    fl_text_str(t, "\n");
}

void fl_stats_format_gpu_summary(const struct fl_stats_gpus *all, int pid, struct fl_text *t)
{
    for (unsigned i = 0; i < all->n; i++) {
        const struct fl_stats_gpu *g = &all->gpu[i];
        fl_stats_format_prefix(pid, NULL, t);
        fl_text_str(t, "GPU");
        fl_text_u64(t, g->id);
        fl_text_str(t, ": ");
        append_count(t, g->allocs);
        fl_text_str(t, g->allocs == 1 ? " request" : " requests");
        if (g->allocs != 0) {
            fl_text_str(t, " (");
            fl_text_u64(t, part(g->hits, g->allocs, 100));
            fl_text_str(t, " % from its pools)");
        }
        fl_text_str(t, ", at most ");
        append_bytes(t, g->held_peak_bytes);
        fl_text_str(t, " held\n");
    }
}
