/* The allocators that compare knows, and those a user names: library, version, environment.
 * Leaves running anything under them to compare.c. */
#ifndef FAULTLESS_FAULTSTAT_PEERS_H
#define FAULTLESS_FAULTSTAT_PEERS_H

#include "faultstat/replacements.h"
#include "faultstat/spawn.h"

#include <limits.h>

enum { FL_PEERS_MAX = 24, FL_PEER_ENV_MAX = 32, FL_PEER_NAME = 32 };
enum { FL_PEER_CANDIDATES = FL_REPLACEMENT_LIBRARIES, FL_PEER_COMMON_MAX = 16 };

#define FL_PEERS_DEFAULT "glibc,glibc-tuned,jemalloc,jemalloc-tuned,tcmalloc,mimalloc,faultless"

/* Q1: env[0] is LD_PRELOAD: the user's for is_any, else a removal until fl_peers_probe has found
 * the library; then it points to `library`, so a peer is not copied after that. */
struct fl_peer {
    char name[FL_PEER_NAME];
    const char *candidate[FL_PEER_CANDIDATES]; /* libraries to try, in order; none for glibc */
    char library[PATH_MAX];                    /* as found; "" for glibc */
    char version[80];
    bool is_any; /* whichever allocator the program brings along serves it: it is not judged */
    bool is_present;
    char absent_because[160];           /* in words; "" when it is present */
    double start_s;                     /* what starting a small process under it took */
    struct fl_env env[FL_PEER_ENV_MAX]; /* removals, common ones, the base's, the definition's */
    size_t env_count;
};

struct fl_peers {
    struct fl_peer peer[FL_PEERS_MAX];
    size_t count;
    struct fl_env common[FL_PEER_COMMON_MAX];
    size_t common_count;
};

/* Add the allocators of one -a argument: NAME,NAME,... of known ones; the first NAME=BASE begins a
 * definition that takes the rest: NAME=BASE,ENV=VALUE,..., BASE a known name or a path with a
 * slash. A piece after the first that is not ENV=... continues the value before it, comma included.
 *   text    kept by reference and cut up; must outlive `peers`.
 *   error   on failure says what is wrong with `text`; 160 bytes.
 * Returns 0; -EINVAL; -ENOSPC past FL_PEERS_MAX or FL_PEER_ENV_MAX. */
int fl_peers_add(struct fl_peers *peers, char *text, char error[160]);

/* Give every peer that is added from now on one more change of the environment. What an allocator's
 * own tuning sets goes over it.
 *   text   NAME=VALUE, kept and cut up.
 * Returns 0; -EINVAL; -ENOSPC. */
int fl_peers_set_common(struct fl_peers *peers, char *text);

/* Find each peer's library by starting a process with it preloaded, which names the file that was
 * loaded and its version. Sets is_present, or says why not. Where a definition sets variables, the
 * process is started with them too, FAULTLESS_STRICT=1 beside them: a library that does not know an
 * option of its own, or refuses its value, ends it.
 *   error   on -EINVAL has what the library said; 320 bytes.
 * Returns 0; -EINVAL when a library refused its variables; -errno when no process can be started.
 * Threads: the caller must be the only thread. */
int fl_peers_probe(struct fl_peers *peers, char error[320]);

/* Have every peer that is faultless write its statistics to `path` at exit, unless its variables
 * send them elsewhere. `path` is kept; "" does nothing. */
void fl_peers_want_stats(struct fl_peers *peers, const char *path);

#endif
