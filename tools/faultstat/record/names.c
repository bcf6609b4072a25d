#include "faultstat/record/names.h"

#include "faultstat/replacements.h"
#include "faultstat/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FL_NAME = 512, FL_NO_FRAME = -1 };

/* One function. */
struct named {
    uint32_t frame; /* its number in "frames" */
    bool has_symbol;
    bool is_runtime; /* of the C library or an allocator: it touches memory for its callers */
};

struct names {
    struct fl_recorder *recorder;
    struct fl_intern functions; /* name NUL file */
    struct fl_intern stacks;    /* kind, span, site, frames outermost first: int32_t each */
    double *faults;             /* by number of stack */
    struct named *named;        /* by number of place */
    json_t *frames;
};

static bool is_runtime_file(const char *file)
{
    static const char *const prefix[] = {"libc.so",    "libc-",     "ld-linux", "libm.so",
                                         "libpthread", "libstdc++", "libgcc_s"};
    for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++) {
        if (strncmp(file, prefix[i], strlen(prefix[i])) == 0) {
            return true;
        }
    }
    return fl_replacement_is(file);
}

/* A new reference. */
static json_t *text_json(const char *text)
{
    char *copy = fl_text_utf8(text);
    json_t *value = copy != NULL ? json_string(copy) : json_null();
    free(copy);
    return value;
}

static void name_place(struct names *names, uint32_t number)
{
    size_t len;
    const uint64_t *key = fl_intern_key(&names->recorder->tally.places, number, &len);
    struct fl_modules *modules = &names->recorder->unwinder.modules;
    uint32_t module = (uint32_t)key[0];
    const char *file = fl_modules_file(modules, module);
    const char *symbol = fl_modules_name(modules, module, key[1]);
    char name[FL_NAME];
    snprintf(name, sizeof(name), symbol != NULL ? "%s" : "[%s]", symbol != NULL ? symbol : file);
    char function[FL_NAME * 2];
    int size = snprintf(function, sizeof(function), "%s%c%s", name, '\0', file);
    size_t before = names->functions.count;
    uint32_t frame = fl_intern(&names->functions, function,
                               size < (int)sizeof(function) ? (size_t)size : sizeof(function) - 1);
    names->named[number] = (struct named){frame, symbol != NULL, is_runtime_file(file)};
    if (names->functions.count > before) {
        json_t *object = json_object();
        json_object_set_new(object, "name", text_json(name));
        json_object_set_new(object, "file", text_json(file));
        json_array_append_new(names->frames, object);
    }
}

/* The innermost function with a name, outside the C library and the allocator where there is one.
 * `place` is innermost first. Returns an index; FL_NO_FRAME: none has a name. */
static int find_site(const struct names *names, const uint32_t *place, size_t count)
{
    int runtime = FL_NO_FRAME;
    for (size_t i = 0; i < count; i++) {
        const struct named *named = &names->named[place[i]];
        if (named->has_symbol && !named->is_runtime) {
            return (int)i;
        }
        runtime = named->has_symbol && runtime == FL_NO_FRAME ? (int)i : runtime;
    }
    return runtime;
}

/* Give the function of a site the line that debug information names first. */
static void note_line(struct names *names, uint32_t number)
{
    json_t *frame = json_array_get(names->frames, names->named[number].frame);
    if (json_object_get(frame, "at") == NULL) {
        size_t len;
        const uint64_t *key = fl_intern_key(&names->recorder->tally.places, number, &len);
        const char *line =
            fl_modules_line(&names->recorder->unwinder.modules, (uint32_t)key[0], key[1]);
        json_object_set_new(frame, "at", text_json(line != NULL ? line : ""));
    }
}

static int name_stack(struct names *names, uint32_t number)
{
    int32_t out[FL_KEY_FRAMES + 1 + FL_FRAMES_MOST];
    size_t len;
    const uint32_t *key = fl_intern_key(&names->recorder->tally.stacks, number, &len);
    size_t count = len / sizeof(*key) - FL_KEY_FRAMES;
    const uint32_t *place = key + FL_KEY_FRAMES;
    int site = find_site(names, place, count);
    if (site != FL_NO_FRAME) {
        note_line(names, place[site]);
    }
    out[FL_KEY_KIND] = (int32_t)key[FL_KEY_KIND];
    out[FL_KEY_SPAN] = (int32_t)key[FL_KEY_SPAN];
    out[FL_KEY_FRAMES] =
        site != FL_NO_FRAME ? (int32_t)names->named[place[site]].frame : FL_NO_FRAME;
    size_t used = FL_KEY_FRAMES + 1;
    for (size_t i = count; i-- > 0;) {
        const struct named *named = &names->named[place[i]];
        bool is_again = used > FL_KEY_FRAMES + 1 && out[used - 1] == (int32_t)named->frame;
        if (named->has_symbol || !is_again) { /* several without a name in a row are one */
            out[used++] = (int32_t)named->frame;
        }
    }
    uint32_t merged = fl_intern(&names->stacks, out, used * sizeof(out[0]));
    if (merged == FL_INTERN_NONE) {
        return -ENOMEM;
    }
    names->faults[merged] += names->recorder->tally.faults[number];
    return 0;
}

static json_t *stack_json(const struct names *names, uint32_t number)
{
    size_t len;
    const int32_t *key = fl_intern_key(&names->stacks, number, &len);
    json_t *frames = json_array();
    for (size_t i = FL_KEY_FRAMES + 1; i < len / sizeof(*key); i++) {
        json_array_append_new(frames, json_integer(key[i]));
    }
    return json_pack("{s:o, s:i, s:i, s:i, s:f}", "frames", frames, "site", (int)key[FL_KEY_FRAMES],
                     "kind", (int)key[FL_KEY_KIND], "span", (int)key[FL_KEY_SPAN], "faults",
                     names->faults[number]);
}

int fl_names_save(struct fl_recorder *recorder, json_t *root)
{
    struct names names = {.recorder = recorder, .frames = json_array()};
    names.named = calloc(recorder->tally.places.count + 1, sizeof(*names.named));
    names.faults = calloc(recorder->tally.stacks.count + 1, sizeof(*names.faults));
    int rc = names.named != NULL && names.faults != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < recorder->tally.places.count; i++) {
        name_place(&names, (uint32_t)i);
    }
    for (size_t i = 0; rc == 0 && i < recorder->tally.stacks.count; i++) {
        rc = name_stack(&names, (uint32_t)i);
    }
    json_t *stacks = json_array();
    for (size_t i = 0; rc == 0 && i < names.stacks.count; i++) {
        json_array_append_new(stacks, stack_json(&names, (uint32_t)i));
    }
    json_object_set_new(root, "frames", names.frames);
    json_object_set_new(root, "stacks", stacks);
    free(names.named);
    free(names.faults);
    fl_intern_clear(&names.functions);
    fl_intern_clear(&names.stacks);
    return rc;
}
