/* Reads FAULTLESS_* into the option table. One concept: environment in, validated values out. */
#include "core/options.h"

#include <errno.h>
#include <string.h>

const struct fl_option_row fl_option_table[FL_OPTION_COUNT] = {
#define X(kind, name, preset, min, max, unit, text) {FL_KIND_##kind, #name, preset, min, max, unit},
#include "core/options.def"
#include "core/others.def"
#undef X
};

static const char prefix[] = FL_OPTION_PREFIX;
static bool name_matches(const char *entry, const char *name)
{
    for (; *name != '\0'; entry++, name++) {
        if (*entry != (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name)) {
            return false;
        }
    }
    return *entry == '=';
}

uint64_t fl_option_preset(enum fl_option_id id)
{
    return fl_option_table[id].preset;
}

/* That text among those that are kept; NULL: it is none of them. */
static const char *find_kept(const struct fl_options *o, const char *s)
{
    for (const char *at = o->texts; at < o->texts + o->kept; at += strlen(at) + 1) {
        if (strcmp(at, s) == 0) {
            return at;
        }
    }
    return NULL;
}

/* A copy of the text in `*out`; NULL when it is empty. -EINVAL: too long to be any file's name. */
static int keep_text(struct fl_options *o, const char *s, const char **out)
{
    size_t n = strlen(s) + 1;

    *out = n == 1 ? NULL : find_kept(o, s);
    if (n == 1 || *out != NULL) {
        return 0;
    }
    if (n > sizeof o->texts - o->kept) {
        return -EINVAL;
    }
    *out = memcpy(o->texts + o->kept, s, n);
    o->kept += n;
    return 0;
}

/* As fl_option_parse, and what is said is in force. */
static int set(struct fl_options *o, enum fl_option_id i, const char *value)
{
    const struct fl_option_row *r = &fl_option_table[i];
    const char *text = NULL;
    uint64_t v;
    int rc = fl_option_parse(i, value, &v);

    if (rc == 0 && r->kind == FL_KIND_TEXT) {
        bool writes = i == FL_OPTION_stats || i == FL_OPTION_profile || i == FL_OPTION_timeline;
        rc = writes && fl_option_is_stray_word(i, value) ? -EINVAL : keep_text(o, value, &text);
    }
    if (rc == 0 && r->kind == FL_KIND_POLICY && strchr(value, ':') != NULL) {
        rc = keep_text(o, strchr(value, ':') + 1, &text);
    }
    if (rc == 0) {
        o->value[i] = v;
        o->text[i] = text;
        o->origin[i] = FL_ORIGIN_ENVIRONMENT;
    }
    return rc;
}

int fl_option_set_in(struct fl_options *o, enum fl_option_id id, const char *value)
{
    if (value != NULL) {
        return set(o, id, value);
    }
    o->value[id] = fl_option_table[id].preset;
    o->text[id] = NULL;
    o->origin[id] = FL_ORIGIN_DEFAULT;
    return 0;
}

/* As the launcher's -o has it: "decay-ms" and "DECAY_MS" are the same name. */
static bool is_name(const char *said, const char *name)
{
    for (; *name != '\0'; said++, name++) {
        char lower = (char)(*said >= 'A' && *said <= 'Z' ? *said - 'A' + 'a' : *said);
        if (*name != (lower == '-' ? '_' : lower)) {
            return false;
        }
    }
    return *said == '\0';
}

int fl_option_find(const char *name)
{
    bool whole = strncmp(name, prefix, sizeof prefix - 1) == 0;

    for (int i = 0; i < FL_OPTION_OURS; i++) {
        if (is_name(name + (whole ? sizeof prefix - 1 : 0), fl_option_table[i].name)) {
            return i;
        }
    }
    return -ENOENT;
}

static void read_entry(struct fl_options *o, const char *entry)
{
    for (enum fl_option_id i = 0; i < FL_OPTION_OURS; i++) {
        if (!name_matches(entry, fl_option_table[i].name)) {
            continue;
        }
        const char *value = strchr(entry, '=') + 1;
        int rc = set(o, i, value);
        if (rc != 0 && o->value[FL_OPTION_log] >= FL_LOG_WARN) {
            fl_option_complain_value(&fl_option_table[i], value, rc);
        }
        o->nbad += rc != 0;
        return;
    }
    if (o->value[FL_OPTION_log] >= FL_LOG_WARN) {
        fl_option_complain_name(entry);
    }
    o->nbad++;
}

/* The level first: it says whether the rest may complain. */
static void read_level(struct fl_options *o, char *const env[])
{
    const struct fl_option_row *r = &fl_option_table[FL_OPTION_log];

    for (; env != NULL && *env != NULL; env++) {
        const char *entry = *env + sizeof prefix - 1;
        uint64_t v;
        if (strncmp(*env, prefix, sizeof prefix - 1) == 0 && name_matches(entry, r->name) &&
            fl_option_parse(FL_OPTION_log, strchr(entry, '=') + 1, &v) == 0) {
            o->value[FL_OPTION_log] = v;
        }
    }
}

void fl_options_read(struct fl_options *o, char *const env[])
{
    memset(o, 0, offsetof(struct fl_options, texts)); /* untouched, these take no memory */
    for (size_t i = 0; i < FL_OPTION_COUNT; i++) {
        o->value[i] = fl_option_table[i].preset;
    }
    read_level(o, env);
    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, prefix, sizeof prefix - 1) == 0) {
            read_entry(o, *env + sizeof prefix - 1);
        }
    }
}

bool fl_options_want_names(const struct fl_options *o)
{
    bool any = false;

    for (size_t i = 0; i < FL_OPTION_COUNT; i++) {
        any |= o->text[i] != NULL && strchr(o->text[i], '%') != NULL;
    }
    return any;
}

void fl_options_expand(struct fl_options *o, enum fl_option_id id, int pid)
{
    static char name[FL_OPTION_TEXTS]; /* the start's alone: its caller's stack may be small */
    const char *kept;

    if (o->text[id] == NULL || strchr(o->text[id], '%') == NULL) {
        return;
    }
    if (!fl_names_expand(&o->names, o->text[id], pid, name, sizeof name) ||
        keep_text(o, name, &kept) != 0) {
        fl_option_complain_value(&fl_option_table[id], o->text[id], -EINVAL);
        kept = NULL;
    }
    o->text[id] = kept;
}
