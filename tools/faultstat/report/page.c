/* The page is page.html with three marks in it, which give way to the figures, the flame graph and
 * the title. */
#include "faultstat/report/report.h"
#include "faultstat/report/sites.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FL_SITES_SHOWN = 40 };

/* The file page.html, built into the program: FL_PAGE_FILE is its path. */
__asm__(".section .rodata\n"
        ".global fl_page_html\n"
        "fl_page_html:\n"
        ".incbin \"" FL_PAGE_FILE "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char fl_page_html[];

static json_t *site_json(const json_t *record, const struct fl_site *site)
{
    char text[512];
    char callers[512];
    json_t *kind = json_array();
    json_t *span = json_array();
    for (int i = 0; i < FL_SITE_KINDS; i++) {
        json_array_append_new(kind, json_real(site->kind[i]));
    }
    for (int i = 0; i < FL_SITE_SPANS; i++) {
        json_array_append_new(span, json_real(site->span[i]));
    }
    return json_pack("{s:s, s:s, s:f, s:f, s:o, s:o}", "name",
                     fl_sites_name(record, site->frame, text, sizeof(text)), "callers",
                     fl_sites_callers(record, site, callers, sizeof(callers)), "faults",
                     site->faults, "cost_ms", site->cost_ms, "kind", kind, "span", span);
}

/* Faults of each kind. */
static json_t *kinds_json(const struct fl_sites *sites)
{
    json_t *array = json_array();
    for (size_t kind = 0; kind < FL_SITE_KINDS; kind++) {
        json_array_append_new(array, json_real(fl_sites_of_kind(sites, kind)));
    }
    return array;
}

/* The comparison without its single runs. */
static json_t *comparison_json(const json_t *compare)
{
    json_t *copy = json_deep_copy(compare);
    json_t *allocator;
    size_t i;
    json_array_foreach(json_object_get(copy, "allocators"), i, allocator)
    {
        json_object_del(allocator, "runs");
    }
    return copy;
}

/* What the page's script reads: the recording without its stacks, and its sites. */
static json_t *data_json(const json_t *record, const json_t *compare)
{
    struct fl_sites sites;
    json_t *data = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)record, key, value) /* the macro wants no const */
    {
        if (strcmp(key, "stacks") != 0 && strcmp(key, "frames") != 0) {
            json_object_set(data, key, value);
        }
    }
    json_t *array = json_array();
    if (fl_sites_get(record, &sites) == 0) {
        for (size_t i = 0; i < sites.count && i < FL_SITES_SHOWN; i++) {
            json_array_append_new(array, site_json(record, &sites.site[i]));
        }
        json_object_set_new(data, "kind_faults", kinds_json(&sites));
        json_object_set_new(data, "sampled", json_real(sites.faults));
        json_object_set_new(data, "attributed", json_real(sites.named));
        json_object_set_new(data, "cost_ms", json_real(sites.cost_ms));
    }
    fl_sites_clear(&sites);
    json_object_set_new(data, "sites", array);
    if (compare != NULL) {
        json_object_set_new(data, "compare", comparison_json(compare));
    }
    return data;
}

/* JSON inside a script element: no '<', so no end of the element. */
static void put_data(const json_t *record, const json_t *compare, FILE *file)
{
    json_t *data = data_json(record, compare);
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(9));
    for (const char *at = text != NULL ? text : "null"; *at != '\0'; at++) {
        fputs(*at == '<' ? "\\u003c" : (char[]){*at, '\0'}, file);
    }
    free(text);
    json_decref(data);
}

static void put_title(const json_t *record, FILE *file)
{
    const json_t *word;
    size_t i;
    json_array_foreach(json_object_get(record, "command"), i, word)
    {
        const char *text = json_string_value(word);
        fputs(i != 0 ? " " : "", file);
        fl_report_escape(text != NULL ? text : "?", 200, file);
    }
}

void fl_report_page(const json_t *record, const json_t *compare, FILE *file)
{
    const char *at = fl_page_html;
    for (const char *mark = strstr(at, "@@"); mark != NULL; mark = strstr(at, "@@")) {
        fwrite(at, 1, (size_t)(mark - at), file);
        at = mark + 2;
        if (strncmp(at, "TITLE", 5) == 0) {
            put_title(record, file);
        } else if (strncmp(at, "FLAME", 5) == 0) {
            fl_report_flame(record, file);
        } else {
            put_data(record, compare, file);
        }
        at += strcspn(at, "@") + 2;
    }
    fputs(at, file);
}
