#include "faultstat/report/report.h"
#include "faultstat/report/sites.h"
#include "faultstat/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static size_t largest(const double *value, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        best = value[i] > value[best] ? i : best;
    }
    return best;
}

static const char *kind_name(const json_t *record, size_t kind)
{
    const json_t *object = json_array_get(json_object_get(record, "kinds"), kind);
    const char *name = json_string_value(json_object_get(object, "name"));
    return name != NULL ? name : "?";
}

static const char *span_name(const json_t *record, size_t span)
{
    const char *name = json_string_value(json_array_get(json_object_get(record, "spans"), span));
    return name != NULL ? name : "?";
}

/* A line of text that came from outside, cut at the terminal's width. */
static void print_line(const char *indent, const char *text, FILE *file)
{
    char *line = fl_text_line(text);
    bool is_tty = isatty(fileno(file)) == 1;
    int room = is_tty ? (int)(fl_text_columns(file) - strlen(indent)) : INT_MAX;
    if (line != NULL) {
        fprintf(file, "%s%.*s\n", indent, room > 0 ? room : 0, line);
    }
    free(line);
}

/* Callers, which may be longer than a line; likewise from outside. */
static void print_callers(const char *text, FILE *file)
{
    char *line = fl_text_line(text);
    if (line != NULL) {
        fl_text_wrap(file, "      <", line, 8, fl_text_columns(file));
    }
    free(line);
}

/* The kind that costs most, with a plus where others cost more than a tenth. Returns whether they
 * do. */
static bool put_kind(const json_t *record, const struct fl_site *site, char text[32])
{
    double cost_ms[FL_SITE_KINDS];
    for (size_t kind = 0; kind < FL_SITE_KINDS; kind++) {
        const json_t *object = json_array_get(json_object_get(record, "kinds"), kind);
        cost_ms[kind] = site->kind[kind] * of(object, "cost_ns") / 1e6;
    }
    size_t best =
        site->cost_ms > 0 ? largest(cost_ms, FL_SITE_KINDS) : largest(site->kind, FL_SITE_KINDS);
    bool is_mixed = cost_ms[best] < site->cost_ms * 0.9;
    snprintf(text, 32, "%s%s", kind_name(record, best), is_mixed ? " +" : "");
    return is_mixed;
}

/* How many sites, from the front, have more than one sample, which chance alone brings. */
static size_t sites_of_weight(const json_t *record, const struct fl_sites *sites)
{
    double samples = of(json_object_get(record, "faults"), "samples");
    double each = samples > 0 ? sites->faults / samples : 0;
    size_t n = sites->count;
    while (each > 1.5 && n > 1 && sites->site[n - 1].faults < 1.5 * each) {
        n--;
    }
    return n;
}

static void print_sites(const json_t *record, const struct fl_sites *sites, size_t most, FILE *file)
{
    char text[512];
    char kind[32];
    size_t weighty = sites_of_weight(record, sites);
    bool is_mixed = false;
    fprintf(file, "\n%10s %6s %10s  %-20s %s\n", "faults", "%", "cost ms", "kind", "mapping");
    for (size_t i = 0; i < weighty && i < most; i++) {
        const struct fl_site *site = &sites->site[i];
        is_mixed |= put_kind(record, site, kind);
        fprintf(file, "%10.0f %6.1f %10.1f  %-20s %s\n", site->faults,
                100 * site->faults / sites->faults, site->cost_ms, kind,
                span_name(record, largest(site->span, FL_SITE_SPANS)));
        print_line("    ", fl_sites_name(record, site->frame, text, sizeof(text)), file);
        if (fl_sites_callers(record, site, text, sizeof(text))[0] != '\0') {
            print_callers(text, file);
        }
    }
    if (weighty > most) {
        fprintf(file, "    and %zu more sites\n", weighty - most);
    }
    if (sites->count > weighty) {
        fprintf(file, "    and of one sample each, which says little: %zu sites\n",
                sites->count - weighty);
    }
    if (is_mixed) {
        fputs("    +: other kinds too, for more than a tenth of the cost\n", file);
    }
}

/* Faults of each kind, over all sites. */
static void print_kinds(const json_t *record, const struct fl_sites *sites, FILE *file)
{
    for (size_t kind = 0; kind < FL_SITE_KINDS; kind++) {
        double faults = fl_sites_of_kind(sites, kind);
        if (faults > 0) {
            const json_t *object = json_array_get(json_object_get(record, "kinds"), kind);
            fprintf(file, "  %-20s %10.0f faults at %6.0f ns: %8.1f ms\n", kind_name(record, kind),
                    faults, of(object, "cost_ns"), faults * of(object, "cost_ns") / 1e6);
        }
    }
}

static void print_prediction(const json_t *record, FILE *file)
{
    const json_t *p = json_object_get(record, "prediction");
    const char *what = json_string_value(json_object_get(p, "of"));
    const char *doubt = json_string_value(json_object_get(p, "doubt"));
    if (what == NULL) {
        return;
    }
    if (doubt != NULL && doubt[0] != '\0') {
        fprintf(file,
                "\npredicted under faultless, %s: between %.1f and %.1f ms instead of %.1f,\n"
                "  processor time between %.1f and %.1f ms instead of %.1f, %.0f faults fewer\n",
                what, of(p, "faultless_wall_low_ms"), of(p, "faultless_wall_high_ms"),
                of(p, "wall_ms"), of(p, "faultless_cpu_low_ms"), of(p, "faultless_cpu_high_ms"),
                of(p, "cpu_ms"), of(p, "avoided_faults"));
        fl_text_wrap(file, "  no closer:", doubt, 13, fl_text_columns(file));
    } else {
        fprintf(file,
                "\npredicted under faultless, %s: %.1f ms instead of %.1f,\n"
                "  processor time %.1f ms",
                what, of(p, "faultless_wall_ms"), of(p, "wall_ms"), of(p, "faultless_cpu_ms"));
        if (of(p, "faultless_cpu_high_ms") > 0) { /* older recordings have none */
            fprintf(file, " (%.1f to %.1f)", of(p, "faultless_cpu_low_ms"),
                    of(p, "faultless_cpu_high_ms"));
        }
        fprintf(file, " instead of %.1f, %.0f faults fewer\n", of(p, "cpu_ms"),
                of(p, "avoided_faults"));
    }
}

void fl_report_top(const json_t *record, size_t most, FILE *file)
{
    struct fl_sites sites;
    const json_t *faults = json_object_get(record, "faults");
    if (fl_sites_get(record, &sites) != 0) {
        return;
    }
    fprintf(file, "\nfaultstat: %.0f faults by getrusage, %.0f by perf events, %.0f stacks taken\n",
            of(faults, "getrusage_minor") + of(faults, "getrusage_major"),
            of(faults, "counted_minor") + of(faults, "counted_major"), of(faults, "samples"));
    if (sites.faults > 0) {
        fprintf(file, "%.1f %% of %.0f faults have a site; user %.2f s, sys %.2f s\n",
                100 * sites.named / sites.faults, sites.faults, of(record, "user_s"),
                of(record, "sys_s"));
        print_kinds(record, &sites, file);
        print_sites(record, &sites, most, file);
    }
    print_prediction(record, file);
    const json_t *note;
    size_t i;
    json_array_foreach(json_object_get(record, "notes"), i, note)
    {
        const char *text = json_string_value(note);
        fputs(i == 0 ? "\n" : "", file);
        fl_text_wrap(file, "-", text != NULL ? text : "?", 2, fl_text_columns(file));
    }
    fl_sites_clear(&sites);
}
