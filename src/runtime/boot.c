/* Boot, and what a thread's end does. */
#include "runtime/runtime.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

struct fl_runtime fl_runtime;

/* From a call of the worker to the job. */
enum { REPAIR_AFTER_NS = 50000000, REZERO_AFTER_NS = 100000000, HIDE_AFTER_NS = 100000000 };

static _Thread_local bool booting;
static pthread_key_t
    thread_key; /* its destructor hands a thread's cache on; the value is the cache */
static bool have_key;

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
    fl_boot();
    if (fl_route.next.free != free_at_boot) {
        fl_route.next.free(p);
    }
}

static void libc_free_at_boot(void *p)
{
    fl_boot();
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
    .boot = fl_boot,
};

/* The value of `thread_key` in a thread that has no cache. */
static char no_cache;

static void thread_ends(void *value)
{
    fl_plan_thread_ends();
    if (value != &no_cache) {
        fl_thread_end(value);
    }
}

/* So that the end of the calling thread is noticed, though it has no cache. */
static void watch_thread(void)
{
    if (have_key && pthread_getspecific(thread_key) == NULL) {
        (void)pthread_setspecific(thread_key, &no_cache);
    }
}

static void note_thread(struct fl_cache *c)
{
    if (have_key) {
        (void)pthread_setspecific(thread_key, c);
    }
}

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
    const char *tunables = getenv("GLIBC_TUNABLES"), *value = getenv("MALLOC_TRIM_THRESHOLD_");
    const char *at = tunables != NULL ? strstr(tunables, name) : NULL;

    value = at != NULL ? at + sizeof name - 1 : value;
    if (value != NULL) {
        fl_region_note_kept(&fl_runtime.region, strtoull(value, NULL, 0)); /* -1: all */
    }
}

/* What stays with glibc must not be mapped and unmapped, or trimmed, at each use either. Each of
 * its arenas keeps so much: where there is less than 16 GiB, a 256th of it; where there is little,
 * what glibc keeps by itself. */
static void tune_next(uint64_t fits)
{
    enum { TRIM_SHARE = 256 };
    const size_t little = (size_t)2 << 30, trim_own = (size_t)128 << 10,
                 trim_most = (size_t)64 << 20;

    if (!fl_runtime.tune_next || fits == 0) { /* 0: no look was to be had, amid a fork */
        return;
    }
    size_t map_from = fl_min(fl_max(fl_route.threshold, (size_t)128 * FL_KIB), (size_t)32 * FL_MIB);
    size_t trim = fits < little ? trim_own : (size_t)fl_min(fits / TRIM_SHARE, trim_most);
    (void)fl_route.next.mallopt(M_MMAP_THRESHOLD, (int)map_from);
    (void)fl_route.next.mallopt(M_TRIM_THRESHOLD, (int)trim);
}

/* After the first large request: how pages move, and why not better. */
static void log_method(void)
{
    static const char *const how[] = {
        [FL_METHOD_MOVE] = "pages move by userfaultfd",
        [FL_METHOD_REMAP] = "pages move by mremap",
        [FL_METHOD_NONE] = "pages do not move",
    };
    char line[128];
    struct fl_text t = fl_text_on(line, sizeof line);
    int refusal = atomic_load(&fl_runtime.region.pages.move.refusal);

    fl_text_str(&t, how[atomic_load(&fl_runtime.region.pages.move.method)]);
    if (refusal != 0) {
        fl_text_str(&t, ": userfaultfd is refused, error ");
        fl_text_u64(&t, (uint64_t)-refusal);
    } else if (fl_runtime.region.config.method != FL_METHOD_MOVE) {
        fl_text_str(&t, ": FAULTLESS_DISABLE");
    }
    fl_say(line);
}

/* Not where it is said at once, or where pages of the stock are wanted before anything is freed. */
static bool may_prove_later(void)
{
    const struct fl_region_config *c = &fl_runtime.region.config;

    return c->wait_for_touch && !c->first_touch && c->stock == 0 && !c->verbose;
}

static void first_large(void)
{
    static _Atomic bool done;

    if (atomic_load(&done) || atomic_exchange(&done, true)) {
        return;
    }
    fl_region_prove_later(&fl_runtime.region);
    if (!may_prove_later()) {
        fl_region_prove(&fl_runtime.region);
    }
    if (fl_runtime.options.value[FL_OPTION_log] >= FL_LOG_INFO) {
        log_method();
    }
}

static void log_choice(void)
{
    char line[256];
    struct fl_text t = fl_text_on(line, sizeof line);

    if (fl_runtime.options.value[FL_OPTION_log] < FL_LOG_INFO) {
        return;
    }
    if (!fl_runtime.active) {
        fl_say(fl_sys_is_confined() ? "inactive: a seccomp filter is there, and it may kill"
                                    : "inactive: every request goes to the next allocator");
        return;
    }
    fl_text_str(&t, "active: window ");
    fl_text_size(&t, fl_runtime.region.space.window.all.len);
    fl_text_str(&t, fl_runtime.region.space.window.reserved ? " reserved" : " unreserved");
    fl_text_str(&t, fl_runtime.region.pages.huge ? ", huge pages" : ", base pages");
    fl_text_str(&t, fl_runtime.region.pages.collapse ? " by collapse" : "");
    fl_text_str(&t, fl_runtime.region.pages.by_touch ? ", populated by touch"
                                                     : ", populated by madvise");
    fl_text_str(&t,
                fl_runtime.next_is_libc ? ", next allocator glibc" : ", next allocator not glibc");
    fl_say(line);
    if (fl_harden.on) {
        fl_say("hardened: no thread caches, no plans");
    }
    if (fl_runtime.numa.active) {
        t = fl_text_on(line, sizeof line);
        fl_numa_describe(&fl_runtime.numa, &t);
        fl_say(line);
    }
}

/* What FAULTLESS_DISABLE leaves; whether it works is seen when it is wanted. */
static enum fl_move_method best_method(uint64_t disable)
{
    if ((disable & FL_DISABLE_UFFD) != 0) {
        return FL_METHOD_NONE;
    }
    return (disable & FL_DISABLE_MOVE) != 0 ? FL_METHOD_REMAP : FL_METHOD_MOVE;
}

static void call_worker(void)
{
    fl_worker_call(&fl_runtime.worker, false);
}

/* Four ticks of the worker's and an arena that no step has used goes back. */
static uint64_t plan_tick_ns(void)
{
    return fl_runtime.options.value[FL_OPTION_decay_ms] * 1000000 / 4;
}

static void start_plan(void)
{
    uint64_t disable = fl_runtime.options.value[FL_OPTION_disable];
    uint64_t steps = (disable & FL_DISABLE_PLAN) != 0 || fl_harden.on
                         ? (uint64_t)FL_STEPS_OFF
                         : fl_runtime.options.value[FL_OPTION_steps];
    struct fl_plan_config config = {
        .trace = fl_runtime.options.text[FL_OPTION_trace],
        .file = fl_runtime.options.text[FL_OPTION_plan],
        .on = fl_runtime.active && steps != FL_STEPS_OFF,
        .detect = fl_runtime.active && steps == FL_STEPS_AUTO,
        .background = (disable & FL_DISABLE_WORKER) == 0,
        .tick_ns = plan_tick_ns(),
        .watch_thread = watch_thread,
        .start = (unsigned)fl_runtime.options.value[FL_OPTION_plan_start],
        .stable = (unsigned)fl_runtime.options.value[FL_OPTION_plan_stable],
        .max = (unsigned)fl_runtime.options.value[FL_OPTION_plan_max],
    };

    fl_plan_start(&fl_runtime.region, &config);
    fl_runtime.region.hooks.release_more = fl_plan_release;
    fl_runtime.region.hooks.lend = fl_plan_lend;
    fl_runtime.region.hooks.age_more = plan_tick_ns() != 0 ? fl_plan_age : NULL;
}

static void plan_worker(uint64_t decay_ms)
{
    struct fl_worker *w = &fl_runtime.worker;

    fl_worker_init(w, &fl_runtime.region, decay_ms);
    fl_worker_add(w, fl_touch_requests, 0);
    fl_worker_add(w, fl_region_refill, 0);
    fl_worker_add(w, fl_region_ahead, 0);
    fl_worker_add(w, fl_region_repair, REPAIR_AFTER_NS);
    fl_worker_add(w, fl_region_rezero, REZERO_AFTER_NS);
    fl_worker_add(w, fl_region_hide, HIDE_AFTER_NS);
    fl_worker_add(w, fl_plan_work, 0);
    fl_worker_add(w, fl_report_wanted, 0);
    if (fl_runtime.numa.active) {
        fl_worker_add(w, fl_place_refresh, 0);
    }
    if (decay_ms != 0) {
        fl_worker_add(w, fl_plan_age, plan_tick_ns());
    }
    fl_runtime.region.touch.call = call_worker;
    fl_route.worker = w;
}

/* Nowhere that addresses are counted, and not on hugetlb pages, of which it would take another. */
static size_t spread(void)
{
    const uint64_t *value = fl_runtime.options.value;
    bool counted = fl_sys.limit(RLIMIT_AS) != UINT64_MAX || fl_sys.limit(RLIMIT_DATA) != UINT64_MAX;
    bool limited = fl_runtime.options.origin[FL_OPTION_limit] != FL_ORIGIN_DEFAULT;

    return counted || limited || value[FL_OPTION_hugetlb] != 0 ? 0 : FL_SPREAD;
}

static void start_region(void)
{
    const uint64_t *value = fl_runtime.options.value;
    uint64_t disable = value[FL_OPTION_disable];
    /* By the worker. Where faults bring huge pages already there is nothing to collapse. */
    bool collapse = value[FL_OPTION_thp] == FL_THP_COLLAPSE && !fl_page.thp &&
                    (disable & (FL_DISABLE_THP | FL_DISABLE_WORKER)) == 0;
    atomic_store(&fl_route.spread, spread());
    struct fl_region_config config = {
        .eager_max = fl_spread(value[FL_OPTION_eager_max]),
        .shards = (unsigned)value[FL_OPTION_shards],
        .wait_for_touch = fl_runtime.options.origin[FL_OPTION_eager_max] == FL_ORIGIN_DEFAULT,
        .limit = value[FL_OPTION_limit],
        .huge = (fl_page.thp || collapse) && (disable & FL_DISABLE_THP) == 0,
        .collapse = collapse,
        .populate_by_touch = (disable & FL_DISABLE_POPULATE) != 0,
        .method = best_method(disable),
        .first_touch = value[FL_OPTION_numa] == FL_NUMA_FIRST_TOUCH &&
                       best_method(disable) == FL_METHOD_MOVE && (disable & FL_DISABLE_NUMA) == 0,
        .may_go_ahead = (disable & (FL_DISABLE_NUMA | FL_DISABLE_WORKER)) == 0,
        .verbose = value[FL_OPTION_log] >= FL_LOG_INFO,
        .quiet = value[FL_OPTION_log] < FL_LOG_WARN,
        .hugetlb = (unsigned)value[FL_OPTION_hugetlb],
        .hugetlb_fork = (enum fl_pin_fork)value[FL_OPTION_hugetlb_fork],
        .stock = value[FL_OPTION_stock],
        .tick_ns = plan_tick_ns(),
        .no_stock = (disable & FL_DISABLE_STOCK) != 0,
    };

    if ((disable & (FL_DISABLE_WORKER | FL_DISABLE_URING)) != 0) {
        fl_crew_limit((disable & FL_DISABLE_WORKER) != 0 ? FL_CREW_ALONE : FL_CREW_THREADS);
    }
    fl_runtime.options.ranks =
        fl_ranks(&fl_runtime.options, fl_sys_auxval(AT_SECURE) != 0 ? NULL : environ);
    fl_runtime.region.look.scratch.ranks = fl_runtime.options.ranks;
    fl_runtime.region.look.scratch.promises = config.wait_for_touch;
    fl_runtime.region.look.worker_scratch.ranks = fl_runtime.region.look.scratch.ranks;
    int rc = fl_region_start(&fl_runtime.region, &config);
    fl_runtime.active = rc == 0 && (disable & FL_DISABLE_ALL) == 0 && !fl_sys_is_confined();
    fl_route.window_base = fl_runtime.region.space.window.all.base;
    fl_route.window_len = fl_runtime.region.space.window.all.len;
    if (fl_runtime.active && (disable & FL_DISABLE_NUMA) == 0) {
        fl_place_start();
    }
    fl_harden_start(&fl_runtime.region, &fl_runtime.options);
    if (value[FL_OPTION_hugetlb] != 0 && !fl_harden.on) { /* no guard fits into such a page */
        fl_runtime.region.config.hugetlb_from = value[FL_OPTION_hugetlb_from];
    }
    bool told = fl_cpu_is_told();
    fl_route.caches =
        (disable & FL_DISABLE_CACHE) == 0 && !fl_harden.on && (!fl_runtime.numa.active || told);
    start_plan();
    if ((disable & FL_DISABLE_WORKER) == 0) {
        plan_worker(value[FL_OPTION_decay_ms]);
    }
}

/* FAULTLESS_STATS is expanded when it is written to, and the GPU trace's %p when that begins: a
 * child of fork has another pid. */
static void expand_names(char *const env[])
{
    static const enum fl_option_id id[] = {FL_OPTION_plan, FL_OPTION_trace, FL_OPTION_gpu_trace};
    struct fl_options *o = &fl_runtime.options;

    if (!fl_options_want_names(o)) {
        return; /* no more calls than a filter may allow */
    }
    fl_names_read(&o->names, env);
    for (size_t i = 0; i < sizeof id / sizeof id[0]; i++) {
        fl_options_expand(o, id[i], id[i] == FL_OPTION_gpu_trace ? 0 : fl_call_pid());
    }
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

static void boot_once(void)
{
    char *const *env = fl_sys_auxval(AT_SECURE) != 0 ? NULL : environ;

    if (!fl_find_next(&fl_route.next, &fl_runtime.next_is_libc)) {
        fl_fatal("no next allocator: libc's malloc was not found");
    }
    fl_find_libc(&fl_libc, &fl_libc_own);
    fl_sys_check_calls();
    fl_sys_boot();
    fl_options_read(&fl_runtime.options, env);
    fl_options_aliases(&fl_runtime.options, env);
    fit_threshold_to_pages(&fl_runtime.options);
    if (fl_runtime.options.nbad != 0 && fl_runtime.options.value[FL_OPTION_strict] != 0) {
        (void)fl_call(SYS_exit_group, EXIT_FAILURE);
    }
    expand_names(env);
    fl_report_start(env);
    start_region();
    if (fl_runtime.options.value[FL_OPTION_confirm] != 0) {
        fl_confirm();
    }
    fl_gpu_start(fl_runtime.active ? &fl_runtime.region : NULL, &fl_runtime.options);
    fl_runtime.tune_next = may_tune_next();
    if (fl_runtime.next_is_libc) {
        note_kept();
    }
    fl_route.thread_ends = note_thread;
    fl_route.first_large = first_large;
    fl_route.tune_next = tune_next;
    have_key = pthread_key_create(&thread_key, thread_ends) == 0;
    (void)fl_fork_watch();
    if (fl_runtime.active) {
        fl_home_settle();
        fl_report_on_signal((int)fl_runtime.options.value[FL_OPTION_stats_signal]);
    }
    log_choice();
    fl_live_start();
    fl_route.threshold =
        fl_runtime.active ? fl_runtime.options.value[FL_OPTION_threshold] : SIZE_MAX;
}

void fl_boot(void)
{
    uint32_t none = FL_BOOT_NONE;

    if (booting || atomic_load(&fl_route.booted) == FL_BOOT_DONE) {
        return;
    }
    if (!atomic_compare_exchange_strong(&fl_route.booted, &none, FL_BOOT_RUNNING)) {
        while (atomic_load(&fl_route.booted) != FL_BOOT_DONE) {
            (void)fl_call(SYS_sched_yield);
        }
        return;
    }
    booting = true;
    boot_once();
    atomic_store(&fl_route.booted, FL_BOOT_DONE);
    booting = false;
}

__attribute__((constructor(101))) static void at_load(void)
{
    fl_boot();
}
