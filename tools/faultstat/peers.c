#include "faultstat/peers.h"

#include "faultstat/watch.h"
#include "launcher/find.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char OWN[] = "own";

/* What a definition may have as its base, and a list as its item. */
static bool is_known(const char *name)
{
    bool is_tuned;
    return strcmp(name, OWN) == 0 || fl_replacement_find(name, &is_tuned) != NULL;
}

static int add_env(struct fl_peer *peer, const char *name, const char *value)
{
    if (peer->env_count == FL_PEER_ENV_MAX) {
        return -ENOSPC;
    }
    peer->env[peer->env_count++] = (struct fl_env){name, value};
    return 0;
}

static void set_base(struct fl_peer *peer, const char *base)
{
    bool is_tuned;
    const struct fl_replacement *r = fl_replacement_find(base, &is_tuned);
    if (r != NULL) {
        memcpy(peer->candidate, r->library, sizeof(peer->candidate));
    } else if (!peer->is_any) {
        peer->candidate[0] = base;
    }
    if (r != NULL && is_tuned) {
        (void)add_env(peer, r->variable, r->value);
    }
}

/* Start a peer from nothing: no preload, and none of the variables that tune an allocator here.
 * What the program has by itself keeps those that the user has set.
 *   base   a known one, or the path of its library; kept. */
static struct fl_peer *add_peer(struct fl_peers *peers, const char *name, const char *base)
{
    if (peers->count == FL_PEERS_MAX) {
        return NULL;
    }
    struct fl_peer *peer = &peers->peer[peers->count++];
    memset(peer, 0, sizeof(*peer));
    snprintf(peer->name, sizeof(peer->name), "%s", name);
    peer->is_any = strcmp(base, OWN) == 0;
    (void)add_env(peer, "LD_PRELOAD", peer->is_any ? getenv("LD_PRELOAD") : NULL);
    if (!peer->is_any) {
        (void)add_env(peer, "GLIBC_TUNABLES", NULL);
        (void)add_env(peer, "MALLOC_CONF", NULL);
    }
    for (size_t i = 0; i < peers->common_count; i++) {
        (void)add_env(peer, peers->common[i].name, peers->common[i].value);
    }
    set_base(peer, base);
    return peer;
}

static bool is_assignment(const char *text)
{
    size_t len = 0;
    while (isupper((unsigned char)text[len]) || isdigit((unsigned char)text[len]) ||
           text[len] == '_') {
        len++;
    }
    return len > 0 && text[len] == '=';
}

/* The rest of a definition, after its base: ENV=VALUE,ENV=VALUE with commas allowed in values. */
static int add_definition_env(struct fl_peer *peer, char *text, char error[160])
{
    while (text != NULL) {
        if (!is_assignment(text)) {
            snprintf(error, 160, "'%.80s' is not ENV=VALUE", text);
            return -EINVAL;
        }
        char *next = strchr(text, ',');
        while (next != NULL && !is_assignment(next + 1)) {
            next = strchr(next + 1, ',');
        }
        if (next != NULL) {
            *next++ = '\0';
        }
        char *equals = strchr(text, '=');
        *equals = '\0';
        int rc = add_env(peer, text, equals + 1);
        if (rc != 0) {
            snprintf(error, 160, "more than %d variables", FL_PEER_ENV_MAX);
            return rc;
        }
        text = next;
    }
    return 0;
}

static int add_definition(struct fl_peers *peers, char *text, char error[160])
{
    char *base = strchr(text, '=');
    *base++ = '\0';
    char *rest = strchr(base, ',');
    if (rest != NULL) {
        *rest++ = '\0';
    }
    if (!is_known(base) && strchr(base, '/') == NULL) {
        snprintf(error, 160, "'%.80s' is neither a known allocator nor a path", base);
        return -EINVAL;
    }
    struct fl_peer *peer = add_peer(peers, text, base);
    if (peer == NULL) {
        snprintf(error, 160, "more than %d allocators", FL_PEERS_MAX);
        return -ENOSPC;
    }
    return add_definition_env(peer, rest, error);
}

int fl_peers_add(struct fl_peers *peers, char *text, char error[160])
{
    while (text != NULL && *text != '\0') {
        char *comma = strchr(text, ',');
        char *equals = strchr(text, '=');
        if (equals != NULL && (comma == NULL || equals < comma)) {
            return add_definition(peers, text, error);
        }
        if (comma != NULL) {
            *comma++ = '\0';
        }
        if (!is_known(text)) {
            snprintf(error, 160,
                     "no allocator '%.60s': --help lists those that are known, and "
                     "NAME=/path/lib.so names another",
                     text);
            return -EINVAL;
        }
        if (add_peer(peers, text, text) == NULL) {
            snprintf(error, 160, "more than %d allocators", FL_PEERS_MAX);
            return -ENOSPC;
        }
        text = comma;
    }
    return 0;
}

int fl_peers_set_common(struct fl_peers *peers, char *text)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        return -EINVAL;
    }
    if (peers->common_count == FL_PEER_COMMON_MAX) {
        return -ENOSPC;
    }
    *equals = '\0';
    peers->common[peers->common_count++] = (struct fl_env){text, equals + 1};
    return 0;
}

/* Copy the value of a line `key=value`. Returns whether there is one that is not empty. */
static bool copy_answer(const char *text, const char *key, char *out, size_t len)
{
    const char *at = strstr(text, key);
    if (at == NULL) {
        return false;
    }
    at += strlen(key);
    size_t n = strcspn(at, "\n");
    snprintf(out, len, "%.*s", (int)n, at);
    return n > 0;
}

/* Start faultstat's own probe under `env`, with its output in `watch`, which the caller clears. */
static int run_probe(struct fl_watch *watch, const char *library, const struct fl_env *env,
                     size_t env_count)
{
    static char self[] = "/proc/self/exe";
    static char probe[] = "probe";
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%s", library != NULL ? library : "");
    char *argv[] = {self, probe, name, NULL};
    struct fl_watch_spec spec = {
        .spawn = {.argv = argv, .env = env, .env_count = env_count, .output = FL_OUTPUT_PIPES}};
    return fl_watch_run(watch, &spec);
}

/* Why the loader did not take a library: it says so in parentheses at the end of its line. */
static void explain_absence(struct fl_peer *peer, const char *library, const char *said)
{
    bool is_none = strstr(said, "cannot open shared object file") != NULL;
    if (is_none && peer->absent_because[0] != '\0') {
        return; /* the first name stands for all that no file has */
    }
    const char *open_mark = strstr(said, "cannot be preloaded (");
    const char *reason = open_mark != NULL ? strchr(open_mark, '(') + 1 : NULL;
    if (strpbrk(library, ": \t\n") != NULL) {
        snprintf(peer->absent_because, sizeof(peer->absent_because),
                 "'%.80s' holds a space or colon, which LD_PRELOAD cannot express", library);
    } else if (strchr(library, '/') != NULL && access(library, R_OK) != 0) {
        snprintf(peer->absent_because, sizeof(peer->absent_because), "%.100s: %s", library,
                 strerror(errno));
    } else if (reason != NULL) {
        snprintf(peer->absent_because, sizeof(peer->absent_because), "%.60s: %.*s", library,
                 (int)strcspn(reason, ")"), reason);
    } else {
        snprintf(peer->absent_because, sizeof(peer->absent_because), "%.100s: not loaded", library);
    }
}

/* Ask a process that has `library` preloaded (NULL: none) what it got. */
static int probe_one(struct fl_peer *peer, const char *library)
{
    static struct fl_watch watch; /* static for its size */
    struct fl_env env = {"LD_PRELOAD", library};
    int rc = run_probe(&watch, library, &env, 1);
    if (rc == 0 && fl_watch_exit_status(&watch) == 0) {
        peer->is_present =
            copy_answer(watch.out.text, "path=", peer->library, sizeof(peer->library)) ||
            library == NULL;
        (void)copy_answer(watch.out.text, "version=", peer->version, sizeof(peer->version));
        peer->start_s = watch.wall_s;
    }
    if (peer->is_present) {
        peer->absent_because[0] = '\0';
    } else if (rc == 0) {
        explain_absence(peer, library, watch.err.text);
    }
    fl_watch_clear(&watch);
    return rc;
}

/* Where faultless is: FAULTLESS_LIB, or beside faultstat. */
static int probe_own(struct fl_peer *peer)
{
    char own[PATH_MAX];
    const char *forced = getenv("FAULTLESS_LIB");
    if (forced != NULL && forced[0] != '\0' && access(forced, R_OK) != 0) {
        snprintf(peer->absent_because, sizeof(peer->absent_because), "FAULTLESS_LIB=%.90s: %s",
                 forced, strerror(errno));
        return 0;
    }
    int rc = fl_find_preloadable(own);
    rc = probe_one(peer, rc == 0 ? own : "libfaultless.so");
    if (rc == 0 && !peer->is_present && strchr(peer->absent_because, ':') == NULL) {
        snprintf(peer->absent_because, sizeof(peer->absent_because),
                 "libfaultless.so: not found; FAULTLESS_LIB may name it");
    }
    return rc;
}

static int find_library(struct fl_peer *peer)
{
    int rc = peer->candidate[0] == NULL ? probe_one(peer, NULL) : 0;
    for (size_t c = 0; c < FL_PEER_CANDIDATES && rc == 0 && !peer->is_present; c++) {
        const char *candidate = peer->candidate[c];
        if (candidate == NULL) {
            break;
        }
        bool is_ours = strcmp(candidate, "libfaultless.so") == 0;
        rc = is_ours ? probe_own(peer) : probe_one(peer, candidate);
    }
    if (peer->library[0] != '\0') {
        /* As the probe was preloaded, where the path has a space. */
        bool is_named = strchr(peer->library, ' ') != NULL;
        peer->env[0].value = is_named ? strrchr(peer->library, '/') + 1 : peer->library;
    }
    return rc;
}

/* Start it once more with all its variables: they may be misspelt. */
static int try_variables(const struct fl_peer *peer, char error[320])
{
    static struct fl_watch watch; /* static for its size */
    struct fl_env env[FL_PEER_ENV_MAX + 1];
    for (size_t i = 1; i < peer->env_count; i++) { /* the first is ours */
        if (strcmp(peer->env[i].name, "LD_PRELOAD") == 0) {
            snprintf(error, 320,
                     "%s: LD_PRELOAD is what loads it, and cannot be set besides; "
                     "-a NAME=/path/lib.so names another allocator",
                     peer->name);
            return -EINVAL;
        }
    }
    memcpy(env, peer->env, peer->env_count * sizeof(*env));
    env[peer->env_count] = (struct fl_env){"FAULTLESS_STRICT", "1"};
    int rc = run_probe(&watch, peer->library, env, peer->env_count + 1);
    if (rc == 0 && fl_watch_exit_status(&watch) != 0) {
        size_t len = strcspn(watch.err.text, "\n");
        snprintf(error, 320, "%s: %.*s", peer->name, len < 240 ? (int)len : 240, watch.err.text);
        if (len == 0) {
            snprintf(error, 320, "%s: it does not start with these variables", peer->name);
        }
        rc = -EINVAL;
    }
    fl_watch_clear(&watch);
    return rc;
}

int fl_peers_probe(struct fl_peers *peers, char error[320])
{
    int rc = 0;
    for (size_t i = 0; i < peers->count && rc == 0; i++) {
        struct fl_peer *peer = &peers->peer[i];
        rc = find_library(peer);
        if (rc == 0 && peer->is_present && peer->library[0] != '\0') {
            rc = try_variables(peer, error);
        }
    }
    return rc;
}

void fl_peers_want_stats(struct fl_peers *peers, const char *path)
{
    for (size_t i = 0; i < peers->count && path[0] != '\0'; i++) {
        struct fl_peer *peer = &peers->peer[i];
        bool is_set = strncmp(peer->version, "faultless", 9) != 0;
        for (size_t e = 0; e < peer->env_count; e++) {
            is_set |= strcmp(peer->env[e].name, "FAULTLESS_STATS") == 0;
        }
        if (!is_set) {
            (void)add_env(peer, "FAULTLESS_STATS", path); /* without room nothing is known */
        }
    }
}
