/* Boot's first step, at load: where requests go, and what would be wrong to read later. Each
 * process pays for it, so that it is as little as can be: start.c has the rest. */
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct fl_runtime fl_runtime;

static _Thread_local bool loading;

/* Until the next allocator is found, which is the first thing that boot does. */
static void *no_malloc(size_t n)
{
    (void)n;
    return NULL;
}

static void *no_calloc(size_t count, size_t size)
{
    (void)count, (void)size;
    return NULL;
}

static void *no_realloc(void *p, size_t n)
{
    (void)p, (void)n;
    return NULL;
}

static void free_at_boot(void *p)
{
    fl_load();
    if (fl_route.next.free != free_at_boot) {
        fl_route.next.free(p);
    }
}

static void libc_free_at_boot(void *p)
{
    fl_load();
    if (fl_route.next.libc_free != libc_free_at_boot) {
        fl_route.next.libc_free(p);
    }
}

struct fl_route fl_route = {
    .threshold = 0,
    .next = {.malloc = no_malloc,
             .calloc = no_calloc,
             .realloc = no_realloc,
             .free = free_at_boot,
             .libc_free = libc_free_at_boot},
    .region = &fl_runtime.region,
    .boot = fl_boot_for_request,
    .window_base = (uintptr_t)1 << 62, /* no address is behind it */
};

/* What the environment says; `entry`: the name and "=". NULL: it is not set. */
static const char *environment(const char *entry)
{
    size_t len = strlen(entry);

    for (char *const *e = environ; e != NULL && *e != NULL; e++) {
        if (strncmp(*e, entry, len) == 0) {
            return *e + len;
        }
    }
    return NULL;
}

/* The user's own settings of what glibc keeps win. Read at boot: later another thread may be
 * changing the environment. */
static bool may_tune_next(void)
{
    static const char *const own[] = {"MALLOC_MMAP_THRESHOLD_=", "MALLOC_TRIM_THRESHOLD_=",
                                      "MALLOC_TOP_PAD_=", "MALLOC_MMAP_MAX_="};
    static const char *const tunable[] = {"_threshold", "top_pad", "mmap_max"};
    const char *tunables = environment("GLIBC_TUNABLES=");
    bool may = fl_runtime.next_is_libc && fl_route.next.mallopt != NULL;

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        may = may && environment(own[i]) == NULL;
    }
    for (size_t i = 0; i < sizeof tunable / sizeof tunable[0]; i++) {
        may = may && (tunables == NULL || strstr(tunables, tunable[i]) == NULL);
    }
    return may;
}

/* A trim threshold that the environment sets for glibc holds for our free memory, too. */
static void note_kept(void)
{
    static const char name[] = "glibc.malloc.trim_threshold=";
    const char *tunables = environment("GLIBC_TUNABLES="),
               *value = environment("MALLOC_TRIM_THRESHOLD_=");
    const char *at = tunables != NULL ? strstr(tunables, name) : NULL;
    uint64_t bytes = SIZE_MAX; /* -1: all */

    value = at != NULL ? at + sizeof name - 1 : value;
    if (value != NULL && (value[0] == '-' || fl_parse_after(value, "", &bytes))) {
        fl_region_note_kept(&fl_runtime.region, bytes);
    }
}

/* FAULTLESS_STATS is expanded when it is written to: a child of fork has another pid. */
static void expand_names(char *const env[])
{
    struct fl_options *o = &fl_runtime.options;

    if (!fl_options_want_names(o)) {
        return; /* no more calls than a filter may allow */
    }
    fl_names_read(&o->names, env);
    fl_options_expand(o, FL_OPTION_trace, fl_call_pid());
}

/* A block is whole base pages: unless the user says otherwise it has so many that the last one,
 * half of which is wasted, costs 3 %. */
static void fit_threshold_to_pages(struct fl_options *o)
{
    enum { PAGES_LEAST = 16 };
    uint64_t *threshold = &o->value[FL_OPTION_threshold];

    if (o->origin[FL_OPTION_threshold] == FL_ORIGIN_DEFAULT) {
        *threshold = fl_max(*threshold, PAGES_LEAST * fl_page.base);
    }
}

/* FAULTLESS_THP=own. At load, before the program has memory of its own. */
static void keep_huge_pages(const struct fl_options *o)
{
    bool wanted = o->value[FL_OPTION_thp] == FL_THP_OWN && !fl_sys_is_confined() &&
                  (o->value[FL_OPTION_disable] & (FL_DISABLE_ALL | FL_DISABLE_THP)) == 0;

    if (wanted && fl_sys_keep_huge() != 0 && o->value[FL_OPTION_log] >= FL_LOG_WARN) {
        fl_say("FAULTLESS_THP=own changes nothing: this kernel cannot keep huge pages to memory "
               "that asks for them (Linux 6.18 can)");
    }
}

static void load_once(void)
{
    struct fl_options *o = &fl_runtime.options;
    char *const *env = fl_sys_auxval(AT_SECURE) != 0 ? NULL : environ;

    if (!fl_find_next(&fl_route.next, &fl_runtime.next_is_libc)) {
        fl_fatal("no next allocator: libc's malloc was not found");
    }
    fl_find_libc(&fl_libc);
    fl_sys_load();
    fl_options_read(o, env);
    fl_options_aliases(o, env);
    fit_threshold_to_pages(o);
    if (o->nbad != 0 && o->value[FL_OPTION_strict] != 0) {
        (void)fl_call(SYS_exit_group, EXIT_FAILURE);
    }
    keep_huge_pages(o);
    expand_names(env);
    fl_report_start(env);
    o->ranks = fl_ranks(o, env);
    fl_runtime.tune_next = may_tune_next();
    if (fl_runtime.next_is_libc) {
        note_kept();
    }
    fl_home_note();
    fl_place_note_launch();
    /* Each sanitizer's runtime has this name, and has to see all blocks: leaks are found from them,
     * and its shadow memory covers no window. */
    bool is_watched = !fl_runtime.next_is_libc && fl_is_next_owners("__interceptor_malloc");
    fl_route.threshold = is_watched ? SIZE_MAX : o->value[FL_OPTION_threshold];
}

/* What is said at load wants all to be known. */
static bool is_to_start_at_once(void)
{
    const struct fl_options *o = &fl_runtime.options;

    return fl_sys_is_confined() || (o->value[FL_OPTION_disable] & FL_DISABLE_ALL) != 0 ||
           o->value[FL_OPTION_log] >= FL_LOG_INFO;
}

static void say_and_join(void)
{
    const uint64_t *value = fl_runtime.options.value;

    if (value[FL_OPTION_confirm] != 0) {
        fl_confirm();
    }
    (void)fl_fork_watch();
    if (is_to_start_at_once()) {
        fl_boot();
    }
    if ((value[FL_OPTION_disable] & FL_DISABLE_ALL) == 0 && !fl_sys_is_confined()) {
        fl_report_on_signal((int)value[FL_OPTION_stats_signal]);
    }
}

void fl_load(void)
{
    uint32_t none = FL_BOOT_NONE;

    if (FL_LIKELY(atomic_load(&fl_route.booted) >= FL_BOOT_LOADED) || loading) {
        return;
    }
    if (!atomic_compare_exchange_strong(&fl_route.booted, &none, FL_BOOT_LOADING)) {
        while (atomic_load(&fl_route.booted) < FL_BOOT_LOADED) {
            (void)fl_call(SYS_sched_yield);
        }
        return;
    }
    loading = true;
    load_once();
    fl_assert(fl_route.next.malloc != no_malloc && fl_route.next.free != free_at_boot);
    atomic_store(&fl_route.booted, FL_BOOT_LOADED);
    loading = false;
    say_and_join();
}

__attribute__((constructor(101))) static void at_load(void)
{
    fl_load();
}
