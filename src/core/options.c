/* Reads FAULTLESS_* into the option table. One concept: environment in, validated values out. */
#include "core/options.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Signals that glibc keeps for itself. */
enum { FIRST_RESERVED = 32, LAST_RESERVED = 33 };

const struct fl_option_row fl_option_table[FL_OPTION_COUNT] = {
#define X(kind, name, preset, min, max, unit, text) {FL_KIND_##kind, #name, preset, min, max, unit},
#include "core/options.def"
#include "core/others.def"
#undef X
};

static const char prefix[] = FL_OPTION_PREFIX;
/* By bits of enum fl_disable. */
static const char *const words[] = {"all",  "thp",  "populate", "worker", "cache", "stock",
                                    "move", "uffd", "uring",    "numa",   "plan"};
static const char *const levels[] = {"none", "warn", "info"}; /* by enum fl_log_level */
/* By enum fl_numa. */
static const char *const policies[] = {"auto",       "off",  "first-touch", "local",
                                       "interleave", "bind", "balance"};
static const char *const step_words[] = {"declared", "off"}; /* by enum fl_steps */
/* By the enums of the same names in faultless/gpu.h. */
static const char *const strategies[] = {"auto",     "naive",          "round",
                                         "unpooled", "naive_best_fit", "auto_growth"};
static const char *const thp_modes[] = {"auto", "collapse", "own"}; /* by enum fl_thp */
static const char *const forks[] = {"none", "wipe", "copy"};
/* The signals that a program may use, by number. glibc has no such list before 2.32. */
static const char signals[FIRST_RESERVED][8] = {
    [SIGHUP] = "HUP",       [SIGINT] = "INT",   [SIGQUIT] = "QUIT",   [SIGUSR1] = "USR1",
    [SIGUSR2] = "USR2",     [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",   [SIGTERM] = "TERM",
    [SIGSTKFLT] = "STKFLT", [SIGCONT] = "CONT", [SIGTSTP] = "TSTP",   [SIGTTIN] = "TTIN",
    [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",   [SIGXFSZ] = "XFSZ",
    [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH", [SIGPOLL] = "POLL",
    [SIGPWR] = "PWR",       [SIGSYS] = "SYS"};
static const char *const pages[] = {"off", "2M", "1G", "any"}; /* bits of enum fl_hugetlb_kind */
static const char *const trims[] = {"auto", "give", "ignore"}; /* by enum fl_trim */
static const char *const fills[] = {"off", "zero", "junk", "both"}; /* bits of enum fl_filler */

#define LIST(list)                                                                                 \
    {                                                                                              \
        list, sizeof(list) / sizeof((list)[0])                                                     \
    }
const struct fl_option_list fl_option_lists[] = {
    LIST(words), LIST(levels),    LIST(policies), LIST(step_words), LIST(strategies),
    LIST(forks), LIST(thp_modes), LIST(pages),    LIST(fills),      LIST(trims)};
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

/* Below zero: FL_OPTION_OFF. */
static int parse_gibs(const char *s, uint64_t *out)
{
    bool below = *s == '-';
    int rc = fl_parse_millionths(s + below, out);

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

/* A process can ask for statistics by it: it can be caught, and is not one that the processor or
 * glibc sends. */
static bool is_for_users(uint64_t number)
{
    static const int others[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                                 SIGILL,  SIGTRAP, SIGABRT, SIGCHLD};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (number == (uint64_t)others[i]) {
            return false;
        }
    }
    return number < NSIG && (number < FIRST_RESERVED || number > LAST_RESERVED);
}

/* A number, or a name with SIG in front or without. 0: none. */
static int parse_signal(const char *s, uint64_t *out)
{
    const char *name = strncmp(s, "SIG", 3) == 0 ? s + 3 : s;
    int rc = fl_parse_u64(s, out);

    for (int i = 1; rc == -EINVAL && i < FIRST_RESERVED && name[0] != '\0'; i++) {
        if (strcmp(signals[i], name) == 0) {
            *out = (uint64_t)i;
            rc = 0;
        }
    }
    return rc == 0 && !is_for_users(*out) ? -EINVAL : rc;
}

static int parse_value(const struct fl_option_row *r, const char *s, uint64_t *out)
{
    int rc = 0;

    switch (r->kind) {
    case FL_KIND_SIZE:
        rc = fl_parse_size(s, out);
        break;
    case FL_KIND_TIME:
    case FL_KIND_COUNT:
        rc = fl_parse_u64(s, out);
        break;
    case FL_KIND_BOOL:
        rc = fl_parse_bool(s);
        *out = rc > 0;
        break;
    case FL_KIND_WORDS:
        return parse_words(s, out);
    case FL_KIND_REAL:
        rc = fl_parse_millionths(s, out);
        break;
    case FL_KIND_GIBS:
        rc = parse_gibs(s, out);
        break;
    case FL_KIND_EVERY:
        rc = parse_every(s, out);
        break;
    case FL_KIND_POLICY:
        return parse_policy(s, out);
    case FL_KIND_LEVEL:
    case FL_KIND_STEPS:
    case FL_KIND_STRATEGY:
    case FL_KIND_FORK:
    case FL_KIND_PAGES:
    case FL_KIND_THP:
    case FL_KIND_FILL:
    case FL_KIND_TRIM:
        rc = find_word(fl_option_lists[r->kind - FL_KIND_WORDS].word,
                       fl_option_lists[r->kind - FL_KIND_WORDS].n, s, strlen(s));
        *out = (uint64_t)rc;
        break;
    case FL_KIND_SIGNAL:
        return parse_signal(s, out);
    case FL_KIND_TEXT:
        *out = 0;
        return 0;
    }
    if (rc < 0) {
        return rc;
    }
    return *out < r->min || *out > r->max ? -ERANGE : 0;
}

int fl_option_parse(enum fl_option_id id, const char *value, uint64_t *out)
{
    return parse_value(&fl_option_table[id], value, out);
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

/* A word that is neither, by a '/', '.' or '%', the name of a file, nor what the option takes
 * besides: taken for a name, a file of that name would lie in whatever folder the process is in. */
static bool is_stray_word(enum fl_option_id i, const char *s)
{
    static const char *const form[] = {"stderr", "summary", "table", "json"};

    if (s[0] == '\0' || strpbrk(s, "/.%") != NULL) {
        return false;
    }
    if (i != FL_OPTION_timeline && fl_parse_bool(s) >= 0) {
        return false;
    }
    return i != FL_OPTION_stats || find_word(form, sizeof form / sizeof form[0], s, strlen(s)) < 0;
}

/* As fl_option_parse, and what is said is in force. */
static int set(struct fl_options *o, enum fl_option_id i, const char *value)
{
    const struct fl_option_row *r = &fl_option_table[i];
    const char *text = NULL;
    uint64_t v;
    int rc = parse_value(r, value, &v);

    if (rc == 0 && r->kind == FL_KIND_TEXT) {
        bool writes = i == FL_OPTION_stats || i == FL_OPTION_profile || i == FL_OPTION_timeline;
        rc = writes && is_stray_word(i, value) ? -EINVAL : keep_text(o, value, &text);
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
            parse_value(r, strchr(entry, '=') + 1, &v) == 0) {
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
