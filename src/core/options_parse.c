/* What a value of an option says: its text in, a number out. */
#include "core/options.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Signals that glibc keeps for itself. */
enum { FIRST_RESERVED = 32, LAST_RESERVED = 33 };

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

/* -1 is never to other allocators, and 0 is here. */
static int parse_ms(const char *s, uint64_t *out)
{
    if (strcmp(s, "never") == 0 || strcmp(s, "-1") == 0) {
        *out = 0;
        return 0;
    }
    return fl_parse_u64(s, out);
}

static int parse_value(const struct fl_option_row *r, const char *s, uint64_t *out)
{
    int rc = 0;

    switch (r->kind) {
    case FL_KIND_SIZE:
        rc = fl_parse_size(s, out);
        break;
    case FL_KIND_TIME:
        rc = parse_ms(s, out);
        break;
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

bool fl_option_is_stray_word(enum fl_option_id i, const char *s)
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
