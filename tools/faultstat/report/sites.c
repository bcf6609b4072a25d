#include "faultstat/report/sites.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_sites(const void *a, const void *b)
{
    const struct fl_site *x = a;
    const struct fl_site *y = b;
    return (x->faults < y->faults) - (x->faults > y->faults);
}

static size_t number(const json_t *object, const char *key, size_t most)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value >= 0 && (size_t)value < most ? (size_t)value : 0;
}

static void add_stack(struct fl_sites *sites, const json_t *record, const json_t *stack)
{
    size_t frames = json_array_size(json_object_get(record, "frames"));
    json_int_t frame = json_integer_value(json_object_get(stack, "site"));
    size_t kind = number(stack, "kind", FL_SITE_KINDS);
    double faults = json_number_value(json_object_get(stack, "faults"));
    const json_t *of_kind = json_array_get(json_object_get(record, "kinds"), kind);
    double cost_ms = faults * json_number_value(json_object_get(of_kind, "cost_ns")) / 1e6;
    bool is_named = frame >= 0 && (size_t)frame < frames;
    if (!is_named) { /* by where it was, though nothing there has a name */
        const json_t *list = json_object_get(stack, "frames");
        const json_t *last =
            json_array_size(list) > 0 ? json_array_get(list, json_array_size(list) - 1) : NULL;
        frame = last != NULL ? json_integer_value(last) : -1;
    }
    bool has_place = frame >= 0 && (size_t)frame < frames;
    struct fl_site *site = &sites->site[has_place ? (size_t)frame + 1 : 0];
    site->faults += faults;
    site->cost_ms += cost_ms;
    site->kind[kind] += faults;
    site->span[number(stack, "span", FL_SITE_SPANS)] += faults;
    if (faults > site->stack_faults) {
        site->stack = stack;
        site->stack_faults = faults;
    }
    sites->faults += faults;
    sites->cost_ms += cost_ms;
    sites->named += is_named ? faults : 0;
}

int fl_sites_get(const json_t *record, struct fl_sites *sites)
{
    memset(sites, 0, sizeof(*sites));
    size_t count = json_array_size(json_object_get(record, "frames")) + 1;
    sites->site = calloc(count, sizeof(*sites->site));
    if (sites->site == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        sites->site[i].frame = (int)i - 1;
    }
    const json_t *stack;
    size_t i;
    json_array_foreach(json_object_get(record, "stacks"), i, stack)
    {
        add_stack(sites, record, stack);
    }
    qsort(sites->site, count, sizeof(*sites->site), compare_sites);
    while (sites->count < count && sites->site[sites->count].faults > 0) {
        sites->count++;
    }
    return 0;
}

const char *fl_sites_name(const json_t *record, int frame, char *text, size_t len)
{
    const json_t *object =
        frame >= 0 ? json_array_get(json_object_get(record, "frames"), (size_t)frame) : NULL;
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *file = json_string_value(json_object_get(object, "file"));
    const char *line = json_string_value(json_object_get(object, "at"));
    if (name == NULL) {
        snprintf(text, len, "(no site)");
    } else if (name[0] == '[') { /* a file, or a thread */
        snprintf(text, len, "%s", name);
    } else {
        snprintf(text, len, "%s (%s)", name,
                 line != NULL && line[0] != '\0' ? line
                 : file != NULL                  ? file
                                                 : "?");
    }
    return text;
}

const char *fl_sites_callers(const json_t *record, const struct fl_site *site, char *text,
                             size_t len)
{
    enum { FL_CALLERS = 3 };
    const json_t *list = json_object_get(site->stack, "frames");
    size_t at = json_array_size(list);
    size_t used = 0;
    size_t last = SIZE_MAX; /* a frame that calls itself, or the interpreter's own, stands once */
    int found = 0;
    text[0] = '\0';
    while (at > 0 && json_integer_value(json_array_get(list, at - 1)) != site->frame) {
        at--; /* inner functions: of the C library, or without a name */
    }
    while (at > 1 && found < FL_CALLERS && used < len) {
        size_t frame = (size_t)json_integer_value(json_array_get(list, --at - 1));
        const char *name = json_string_value(
            json_object_get(json_array_get(json_object_get(record, "frames"), frame), "name"));
        if (name != NULL && name[0] != '[' && (int)frame != site->frame && frame != last) {
            int more = snprintf(text + used, len - used, "%s%s", found != 0 ? " < " : "", name);
            used += more > 0 ? (size_t)more : 0;
            found++;
            last = frame;
        }
    }
    return text;
}

double fl_sites_of_kind(const struct fl_sites *sites, size_t kind)
{
    double faults = 0;
    for (size_t i = 0; i < sites->count; i++) {
        faults += sites->site[i].kind[kind];
    }
    return faults;
}

void fl_sites_clear(struct fl_sites *sites)
{
    free(sites->site);
    sites->site = NULL;
}
