/* Reads FAULTLESS_* into the option table. One concept: environment in, validated values out. */
#include "core/core.h"

#include <errno.h>
#include <string.h>

/* From LEVEL to the end: one of the words of lists[kind - LEVEL]. */
enum kind {
    SIZE,
    TIME,
    COUNT,
    BOOL,
    REAL,
    GIBS,
    EVERY,
    TEXT,
    WORDS,
    LEVEL,
    POLICY,
    STEPS,
    STRATEGY,
    REUSE,
    EVENTS,
    FORK
};

static const struct row {
    enum kind kind;
    const char *name;
    uint64_t preset, min, max;
    const char *unit;
} table[] = {
#define X(kind, name, preset, min, max, unit, text) {kind, #name, preset, min, max, unit},
#include "core/options.def"
#undef X
};

static const char prefix[] = "FAULTLESS_";
/* By bits of enum fl_disable. */
static const char *const words[] = {"all",  "thp",  "populate", "worker", "cache", "stock",
                                    "move", "uffd", "uring",    "numa",   "plan"};
static const char *const levels[] = {"none", "warn", "info"}; /* by enum fl_log_level */
/* By enum fl_numa. */
static const char *const policies[] = {"auto",       "off",  "first-touch", "local",
                                       "interleave", "bind", "balance"};
static const char *const step_words[] = {"auto", "declared", "off"}; /* by enum fl_steps */
/* By the enums of the same names in faultless/gpu.h. */
static const char *const strategies[] = {"auto",           "naive",       "round",   "unpooled",
                                         "naive_best_fit", "auto_growth", "planned", "driver"};
static const char *const reuses[] = {"query", "own", "wait"};
static const char *const events[] = {"eager", "lazy"};
static const char *const forks[] = {"none", "wipe", "copy"};

#define LIST(list)                                                                                 \
    {                                                                                              \
        list, sizeof(list) / sizeof((list)[0])                                                     \
    }
static const struct list {
    const char *const *word;
    size_t n;
} lists[] = {LIST(levels), LIST(policies), LIST(step_words), LIST(strategies),
             LIST(reuses), LIST(events),   LIST(forks)};
#undef LIST

static bool name_matches(const char *entry, const char *name)
{
    for (; *name != '\0'; entry++, name++) {
        if (*entry != (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name)) {
            return false;
        }
    }
    return *entry == '=';
}

/* Index of the list's member that equals the first `len` letters of `s`; -EINVAL when none does. */
static int find_word(const char *const list[], size_t n, const char *s, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(list[i]) == len && strncmp(list[i], s, len) == 0) {
            return (int)i;
        }
    }
    return -EINVAL;
}

static int parse_words(const char *s, uint64_t *out)
{
    *out = 0;
    while (*s != '\0') {
        size_t len = strcspn(s, ",");
        int i = find_word(words, sizeof words / sizeof words[0], s, len);
        if (i >= 0) {
            *out |= 1u << i;
        } else if (len != 0) {
            return -EINVAL;
        }
        s += len + (s[len] == ',');
    }
    return 0;
}

static bool is_node_list(const char *s)
{
    uint64_t first, last;
    int rc;

    if (strcmp(s, "all") == 0) {
        return true;
    }
    if (*s == '\0') {
        return false;
    }
    while ((rc = fl_parse_span(&s, &first, &last)) == 0 && last < FL_NODE_IDS) {
    }
    return rc == -ENOENT && *s == '\0';
}

/* A word, of which some take nodes behind a colon: bind must. */
static int parse_policy(const char *s, uint64_t *out)
{
    size_t len = strcspn(s, ":");
    int rc = find_word(policies, sizeof policies / sizeof policies[0], s, len);

    if (rc < 0 || (rc == FL_NUMA_BIND && s[len] == '\0')) {
        return -EINVAL;
    }
    if (s[len] == ':' &&
        ((rc != FL_NUMA_BIND && rc != FL_NUMA_INTERLEAVE) || !is_node_list(s + len + 1))) {
        return -EINVAL;
    }
    *out = (uint64_t)rc;
    return 0;
}

/* Off, or below zero: FL_OPTION_OFF. */
static int parse_gibs(const char *s, uint64_t *out)
{
    bool below = *s == '-';
    int rc = 0;

    *out = FL_OPTION_OFF;
    if (strcmp(s, "off") != 0) {
        rc = fl_parse_millionths(s + below, out);
    }
    if (rc == 0 && below) {
        *out = FL_OPTION_OFF;
    }
    return rc;
}

/* How many share one: off is none, all is each. */
static int parse_every(const char *s, uint64_t *out)
{
    bool all = strcmp(s, "all") == 0;

    *out = all;
    return all || strcmp(s, "off") == 0 ? 0 : fl_parse_u64(s, out);
}

static int parse_value(const struct row *r, const char *s, uint64_t *out)
{
    int rc = 0;

    switch (r->kind) {
    case SIZE:
        rc = fl_parse_size(s, out);
        break;
    case TIME:
    case COUNT:
        rc = fl_parse_u64(s, out);
        break;
    case BOOL:
        rc = fl_parse_bool(s);
        *out = rc > 0;
        break;
    case WORDS:
        return parse_words(s, out);
    case REAL:
        rc = fl_parse_millionths(s, out);
        break;
    case GIBS:
        rc = parse_gibs(s, out);
        break;
    case EVERY:
        rc = parse_every(s, out);
        break;
    case POLICY:
        return parse_policy(s, out);
    case LEVEL:
    case STEPS:
    case STRATEGY:
    case REUSE:
    case EVENTS:
    case FORK:
        rc = find_word(lists[r->kind - LEVEL].word, lists[r->kind - LEVEL].n, s, strlen(s));
        *out = (uint64_t)rc;
        break;
    case TEXT:
        *out = 0;
        return 0;
    }
    if (rc < 0) {
        return rc;
    }
    return *out < r->min || *out > r->max ? -ERANGE : 0;
}

static void append_value(struct fl_text *t, const struct row *r, uint64_t v)
{
    if (r->kind == SIZE) {
        fl_text_size(t, v);
    } else if (r->kind >= LEVEL) {
        fl_text_str(t, lists[r->kind - LEVEL].word[v]);
    } else if (r->kind == GIBS && v == FL_OPTION_OFF) {
        fl_text_str(t, "off");
    } else if (r->kind == EVERY && v <= 1) {
        fl_text_str(t, v == 0 ? "off" : "all");
    } else if (r->kind == REAL || r->kind == GIBS) {
        fl_text_millionths(t, v);
    } else {
        fl_text_u64(t, v);
    }
}

int fl_option_parse(enum fl_option_id id, const char *value, uint64_t *out)
{
    return parse_value(&table[id], value, out);
}

uint64_t fl_option_preset(enum fl_option_id id)
{
    return table[id].preset;
}

static void append_name(struct fl_text *t, const char *name)
{
    fl_text_str(t, prefix);
    for (; *name != '\0'; name++) {
        char up[2] = {(char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name), '\0'};
        fl_text_str(t, up);
    }
}

static void complain_value(const struct row *r, const char *value, int rc)
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
        fl_text_str(&t, r->unit);
        fl_text_str(&t, ")");
    }
    fl_text_str(&t, "; using ");
    if (r->kind == WORDS) {
        fl_text_str(&t, "none");
    } else {
        append_value(&t, r, r->preset);
    }
    fl_say(line);
}

static void complain_name(const char *entry)
{
    char line[400], given[64];
    struct fl_text t = fl_text_on(line, sizeof line), g = fl_text_on(given, sizeof given);
    size_t best = 0;
    unsigned best_edits = UINT32_MAX;

    for (const char *p = entry; *p != '=' && *p != '\0'; p++) {
        char low[2] = {(char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p), '\0'};
        fl_text_str(&g, low);
    }
    for (size_t i = 0; i < FL_OPTION_COUNT; i++) {
        unsigned edits = fl_edit_distance(given, table[i].name);
        if (edits < best_edits) {
            best_edits = edits;
            best = i;
        }
    }
    append_name(&t, given);
    fl_text_str(&t, " is not an option; did you mean ");
    append_name(&t, table[best].name);
    fl_text_str(&t, "?");
    fl_say(line);
}

/* A copy of the text in `*out`; NULL when it is empty. -EINVAL: too long to be any file's name. */
static int keep_text(struct fl_options *o, const char *s, const char **out)
{
    size_t n = strlen(s) + 1;

    *out = NULL;
    if (n == 1) {
        return 0;
    }
    if (n > sizeof o->texts - o->kept) {
        return -EINVAL;
    }
    *out = memcpy(o->texts + o->kept, s, n);
    o->kept += n;
    return 0;
}

static void read_entry(struct fl_options *o, const char *entry)
{
    for (size_t i = 0; i < FL_OPTION_COUNT; i++) {
        if (!name_matches(entry, table[i].name)) {
            continue;
        }
        const char *value = strchr(entry, '=') + 1;
        uint64_t v;
        const char *text = NULL;
        int rc = parse_value(&table[i], value, &v);
        if (rc == 0 && table[i].kind == TEXT) {
            rc = keep_text(o, value, &text);
        }
        if (rc == 0 && table[i].kind == POLICY && strchr(value, ':') != NULL) {
            rc = keep_text(o, strchr(value, ':') + 1, &text);
        }
        if (rc != 0) {
            if (o->value[FL_OPTION_log] >= FL_LOG_WARN) {
                complain_value(&table[i], value, rc);
            }
            o->nbad++;
            return;
        }
        o->value[i] = v;
        o->text[i] = text;
        o->origin[i] = FL_ORIGIN_ENVIRONMENT;
        return;
    }
    if (o->value[FL_OPTION_log] >= FL_LOG_WARN) {
        complain_name(entry);
    }
    o->nbad++;
}

/* The level first: it says whether the rest may complain. */
static void read_level(struct fl_options *o, char *const env[])
{
    const struct row *r = &table[FL_OPTION_log];

    for (; env != NULL && *env != NULL; env++) {
        const char *entry = *env + sizeof prefix - 1;
        uint64_t v;
        if (strncmp(*env, prefix, sizeof prefix - 1) == 0 && name_matches(entry, r->name) &&
            parse_value(r, strchr(entry, '=') + 1, &v) == 0) {
            o->value[FL_OPTION_log] = v;
        }
    }
}

void fl_options_read(struct fl_options *o, char *const env[])
{
    *o = (struct fl_options){.nbad = 0};
    for (size_t i = 0; i < FL_OPTION_COUNT; i++) {
        o->value[i] = table[i].preset;
    }
    read_level(o, env);
    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, prefix, sizeof prefix - 1) == 0) {
            read_entry(o, *env + sizeof prefix - 1);
        }
    }
}

void fl_options_confirm(const struct fl_options *o)
{
    static const char *const origins[] = {" (default)", " (environment)",
                                          " (environment, by another name)"};

    for (size_t i = 0; i < FL_OPTION_COUNT; i++) {
        char line[400];
        struct fl_text t = fl_text_on(line, sizeof line);
        append_name(&t, table[i].name);
        fl_text_str(&t, "=");
        if (table[i].kind == WORDS) {
            for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
                if ((o->value[i] >> w & 1) != 0) {
                    fl_text_str(&t, words[w]);
                    fl_text_str(&t, " ");
                }
            }
        } else if (table[i].kind == TEXT) {
            fl_text_str(&t, o->text[i] != NULL ? o->text[i] : "");
        } else {
            append_value(&t, &table[i], o->value[i]);
            if (o->text[i] != NULL) {
                fl_text_str(&t, ":");
                fl_text_str(&t, o->text[i]);
            }
        }
        fl_text_str(&t, origins[o->origin[i]]);
        fl_say(line);
    }
}
