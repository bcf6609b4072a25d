/* What options are said to be: FAULTLESS_CONFIRM, and the line that each mistake gets. */
#include "core/options.h"

#include <errno.h>
#include <string.h>

static void append_value(struct fl_text *t, const struct fl_option_row *r, uint64_t v)
{
    fl_assert(r->kind < FL_KIND_LEVEL || v < fl_option_lists[r->kind - FL_KIND_WORDS].n);
    if (r->kind == FL_KIND_SIZE) {
        fl_text_size(t, v);
    } else if (r->kind >= FL_KIND_LEVEL) {
        fl_text_str(t, fl_option_lists[r->kind - FL_KIND_WORDS].word[v]);
    } else if (r->kind == FL_KIND_GIBS && v == FL_OPTION_OFF) {
        fl_text_str(t, "-1");
    } else if (r->kind == FL_KIND_EVERY && v <= 1) {
        fl_text_str(t, v == 0 ? "off" : "all");
    } else if (r->kind == FL_KIND_REAL || r->kind == FL_KIND_GIBS) {
        fl_text_millionths(t, v);
    } else {
        fl_text_u64(t, v);
    }
}

/* What 0 stands for, where that is no number; NULL: 0 is meant. */
static const char *automatic_word(enum fl_option_id id, bool is_set)
{
    switch (id) {
    case FL_OPTION_eager_max:
        return is_set ? "automatic" : "on touch";
    case FL_OPTION_limit:
    case FL_OPTION_host_share:
        return "automatic";
    case FL_OPTION_shards:
        return "as threads need them";
    case FL_OPTION_stock:
        return "a 64th of the peak";
    case FL_OPTION_gpu_chunk:
        return "8 MiB, and 2 MiB for small requests";
    case FL_OPTION_gpu_share:
        return "by ranks and devices";
    default:
        return NULL;
    }
}

/* "a, b or c" */
static void append_list(struct fl_text *t, const struct fl_option_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        fl_text_str(t, i == 0 ? "" : i + 1 < list->n ? ", " : " or ");
        fl_text_str(t, list->word[i]);
    }
}

/* What is understood. */
static void append_hint(struct fl_text *t, const struct fl_option_row *r)
{
    static const char *const hint[] = {
        [FL_KIND_SIZE] = "bytes, such as 65536, 64K, 512M or 8G",
        [FL_KIND_TIME] = "milliseconds, such as 10000, or never",
        [FL_KIND_BOOL] = "1, on, yes or true; 0, off, no or false",
        [FL_KIND_TEXT] = "a name of at most 4095 bytes",
        [FL_KIND_SIGNAL] = "a signal that programs may catch, such as USR1 or 10",
    };

    if (r == &fl_option_table[FL_OPTION_stats]) {
        fl_text_str(t, "1, table, json, or the name of a file with a / or a dot in it");
        return;
    }
    bool either = r == &fl_option_table[FL_OPTION_profile];
    if (either || r == &fl_option_table[FL_OPTION_timeline]) {
        fl_text_str(t, either ? "1, or " : "");
        fl_text_str(t, "the name of a file with a / or a dot in it");
        return;
    }
    if (r->kind == FL_KIND_WORDS) {
        fl_text_str(t, "commas between any of ");
    }
    if (r->kind == FL_KIND_COUNT) {
        fl_text_str(t, "a whole number of ");
        fl_text_str(t, r->unit);
    } else if (r->kind == FL_KIND_POLICY || r->kind == FL_KIND_EVERY) {
        fl_text_str(t, r->unit);
    } else if (r->kind >= FL_KIND_WORDS) {
        append_list(t, &fl_option_lists[r->kind - FL_KIND_WORDS]);
    } else if (hint[r->kind] != NULL) {
        fl_text_str(t, hint[r->kind]);
    }
}

static void append_name(struct fl_text *t, const char *name)
{
    fl_text_str(t, FL_OPTION_PREFIX);
    for (; *name != '\0'; name++) {
        char up[2] = {(char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name), '\0'};
        fl_text_str(t, up);
    }
}

void fl_option_complain_value(const struct fl_option_row *r, const char *value, int rc)
{
    char line[400];
    struct fl_text t = fl_text_on(line, sizeof line);

    append_name(&t, r->name);
    fl_text_str(&t, "=");
    fl_text_str(&t, value);
    if (rc == -ERANGE) {
        fl_text_str(&t, " is out of range (");
        append_value(&t, r, r->min);
        fl_text_str(&t, " to ");
        append_value(&t, r, r->max);
        fl_text_str(&t, ")");
    } else {
        fl_text_str(&t, " is not understood (");
        append_hint(&t, r);
        fl_text_str(&t, ")");
    }
    fl_text_str(&t, "; using ");
    const char *word = automatic_word((enum fl_option_id)(r - fl_option_table), false);
    if (r->kind == FL_KIND_WORDS || r->kind == FL_KIND_TEXT) {
        fl_text_str(&t, "none");
    } else if (r->preset == 0 && word != NULL) {
        fl_text_str(&t, "the default, ");
        fl_text_str(&t, word);
    } else {
        append_value(&t, r, r->preset);
    }
    fl_say(line);
}

void fl_option_complain_name(const char *entry)
{
    char line[400], given[64];
    struct fl_text t = fl_text_on(line, sizeof line), g = fl_text_on(given, sizeof given);
    size_t best = 0;
    unsigned best_edits = UINT32_MAX;

    for (const char *p = entry; *p != '=' && *p != '\0'; p++) {
        char low[2] = {(char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p), '\0'};
        fl_text_str(&g, low);
    }
    for (size_t i = 0; i < FL_OPTION_OURS; i++) {
        unsigned edits = fl_edit_distance(given, fl_option_table[i].name);
        if (edits < best_edits) {
            best_edits = edits;
            best = i;
        }
    }
    append_name(&t, given);
    fl_text_str(&t, " is not an option; did you mean ");
    append_name(&t, fl_option_table[best].name);
    fl_text_str(&t, "?");
    fl_say(line);
}

static void append_words(struct fl_text *t, const struct fl_option_list *list, uint64_t bits)
{
    const char *between = "";

    for (size_t i = 0; i < list->n; i++) {
        if ((bits >> i & 1) != 0) {
            fl_text_str(t, between);
            fl_text_str(t, list->word[i]);
            between = ",";
        }
    }
}

/* True: it is what 0 comes to. */
static bool append_in_force(struct fl_text *t, const struct fl_options *o, enum fl_option_id id)
{
    const struct fl_option_row *r = &fl_option_table[id];
    bool is_set = o->origin[id] != FL_ORIGIN_DEFAULT;
    const char *word = o->value[id] == 0 ? automatic_word(id, is_set) : NULL;
    bool has_value = word != NULL && o->automatic[id] != 0;

    if (r->kind == FL_KIND_WORDS) {
        append_words(t, &fl_option_lists[0], o->value[id]);
    } else if (r->kind == FL_KIND_TEXT) {
        fl_text_str(t, o->text[id] != NULL ? o->text[id] : "");
    } else if (word != NULL && !has_value) {
        fl_text_str(t, word);
    } else {
        append_value(t, r, has_value ? o->automatic[id] : o->value[id]);
        fl_text_str(t, o->text[id] != NULL ? ":" : "");
        fl_text_str(t, o->text[id] != NULL ? o->text[id] : "");
    }
    return word != NULL;
}

void fl_options_confirm(const struct fl_options *o)
{
    static const char *const origins[] = {"default", "environment", "environment, by another name"};

    for (enum fl_option_id i = 0; i < FL_OPTION_OURS; i++) {
        char line[480];
        struct fl_text t = fl_text_on(line, sizeof line);
        append_name(&t, fl_option_table[i].name);
        fl_text_str(&t, "=");
        bool automatic = append_in_force(&t, o, i);
        fl_text_str(&t, automatic ? " (automatic" : " (");
        if (!automatic || o->origin[i] != FL_ORIGIN_DEFAULT) {
            fl_text_str(&t, automatic ? ", " : "");
            fl_text_str(&t, origins[o->origin[i]]);
        }
        fl_text_str(&t, ")");
        fl_say(line);
    }
    for (enum fl_option_id i = FL_OPTION_OURS; i < FL_OPTION_COUNT; i++) {
        char line[480];
        struct fl_text t = fl_text_on(line, sizeof line);
        if (o->origin[i] == FL_ORIGIN_ALIAS) {
            fl_text_str(&t, fl_option_alias(o, i));
            fl_text_str(&t, "=");
            append_value(&t, &fl_option_table[i], o->value[i]);
            fl_text_str(&t, " (environment)");
            fl_say(line);
        }
    }
}
