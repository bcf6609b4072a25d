/* What boot's second step puts together: the region, the planner, the worker. once.c says when.
 *
 * What the start reads is right whenever it is read (page sizes, limits, memory, the nodes and the
 * cpuset), or was read at load, for it may be wrong by now: the environment, the policy and the
 * CPUs that the process was launched with, its number, the filter around it. */
#include "runtime/runtime.h"

#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

/* From a call of the worker to the job. */
enum { REPAIR_AFTER_NS = 50000000, REST_AFTER_NS = 40000000 };

static pthread_key_t
    thread_key; /* its destructor hands a thread's cache on; the value is the cache */
static bool have_key;

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

/* After FL_DECAY_TICKS of them an arena that no step has used goes back. */
uint64_t fl_tick_ns(void)
{
    return fl_runtime.options.value[FL_OPTION_decay_ms] * 1000000 / FL_DECAY_TICKS;
}

bool fl_steps_are_on(void)
{
    bool is_off =
        (fl_runtime.options.value[FL_OPTION_disable] & FL_DISABLE_PLAN) != 0 || fl_harden.on;

    return fl_runtime.active && !is_off &&
           fl_runtime.options.value[FL_OPTION_steps] != (uint64_t)FL_STEPS_OFF;
}

static void start_plan(void)
{
    uint64_t disable = fl_runtime.options.value[FL_OPTION_disable];
    struct fl_plan_config config = {
        .trace = fl_runtime.options.text[FL_OPTION_trace],
        .on = fl_steps_are_on(),
        .background = (disable & FL_DISABLE_WORKER) == 0,
        .tick_ns = fl_tick_ns(),
        .watch_thread = watch_thread,
        .start = (unsigned)fl_runtime.options.value[FL_OPTION_plan_start],
        .stable = (unsigned)fl_runtime.options.value[FL_OPTION_plan_stable],
        .max = (unsigned)fl_runtime.options.value[FL_OPTION_plan_max],
    };

    fl_plan_start(&fl_runtime.region, &config);
    fl_runtime.region.hooks.release_more = fl_plan_release;
    fl_runtime.region.hooks.lend = fl_plan_lend;
    fl_runtime.region.hooks.age_more = fl_plan_age;
    fl_runtime.region.hooks.maps_are_counted = fl_again_begin;
}

static void plan_worker(uint64_t decay_ms)
{
    struct fl_worker *w = &fl_runtime.worker;

    fl_worker_init(w, &fl_runtime.region, decay_ms);
    fl_worker_add(w, fl_touch_requests, 0);
    fl_worker_add(w, fl_region_refill, 0);
    fl_worker_add(w, fl_region_thin, 0);
    fl_worker_add(w, fl_region_repair, REPAIR_AFTER_NS);
    fl_worker_add(w, fl_region_rest, REST_AFTER_NS);
    fl_worker_add(w, fl_plan_work, 0);
    fl_worker_add(w, fl_report_wanted, 0);
    if (fl_runtime.numa.active) {
        fl_worker_add(w, fl_place_refresh, 0);
    }
    fl_worker_add(w, fl_plan_age, decay_ms != 0 ? fl_tick_ns() : FL_JOB_IDLE);
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

/* Apart: what is configured lies on its stack. 0, or why there is no region. */
static FL_APART int start_window(void)
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
        .crowd_goes = fl_runtime.options.origin[FL_OPTION_decay_ms] == FL_ORIGIN_DEFAULT,
        .limit = value[FL_OPTION_limit],
        .huge = (fl_page.thp || collapse) && (disable & FL_DISABLE_THP) == 0,
        .collapse = collapse,
        .populate_by_touch = (disable & FL_DISABLE_POPULATE) != 0,
        .method = best_method(disable),
        .first_touch = value[FL_OPTION_numa] == FL_NUMA_FIRST_TOUCH &&
                       best_method(disable) == FL_METHOD_MOVE && (disable & FL_DISABLE_NUMA) == 0,
        .verbose = value[FL_OPTION_log] >= FL_LOG_INFO,
        .quiet = value[FL_OPTION_log] < FL_LOG_WARN,
        .hugetlb = (unsigned)value[FL_OPTION_hugetlb],
        .hugetlb_fork = (enum fl_pin_fork)value[FL_OPTION_hugetlb_fork],
        .stock = value[FL_OPTION_stock],
        .tick_ns = fl_tick_ns(),
        .no_stock = (disable & FL_DISABLE_STOCK) != 0,
    };

    if ((disable & (FL_DISABLE_WORKER | FL_DISABLE_URING)) != 0) {
        fl_crew_limit((disable & FL_DISABLE_WORKER) != 0 ? FL_CREW_ALONE : FL_CREW_THREADS);
    }
    fl_runtime.region.look.scratch.ranks = fl_runtime.options.ranks;
    fl_runtime.region.look.scratch.promises = config.wait_for_touch;
    fl_runtime.region.look.worker_scratch.ranks = fl_runtime.region.look.scratch.ranks;
    return fl_region_start(&fl_runtime.region, &config);
}

static void start_region(void)
{
    const uint64_t *value = fl_runtime.options.value;
    uint64_t disable = value[FL_OPTION_disable];
    int rc = start_window();

    fl_runtime.active = rc == 0 && (disable & FL_DISABLE_ALL) == 0 && !fl_sys_is_confined();
    fl_route.window_base = fl_runtime.region.space.window.all.base;
    fl_route.window_len = fl_runtime.region.space.window.all.len;
    if (fl_runtime.active && (disable & FL_DISABLE_NUMA) == 0) {
        fl_place_start();
    }
    fl_trim_choose((enum fl_trim)value[FL_OPTION_trim]);
    fl_harden_start(&fl_runtime.region, &fl_runtime.options);
    if (value[FL_OPTION_hugetlb] != 0 && !fl_harden.on) { /* no guard fits into such a page */
        fl_runtime.region.config.hugetlb_from = value[FL_OPTION_hugetlb_from];
    }
    bool told = fl_cpu_is_told(fl_find_next_of("__rseq_offset"), fl_find_next_of("__rseq_size"));
    fl_route.caches = have_key && (disable & FL_DISABLE_CACHE) == 0 && !fl_harden.on &&
                      (!fl_runtime.numa.active || told);
    start_plan();
    if ((disable & FL_DISABLE_WORKER) == 0) {
        plan_worker(value[FL_OPTION_decay_ms]);
    }
}

void fl_start_once(void)
{
    fl_sys_check_calls();
    fl_sys_boot();
    have_key = pthread_key_create(&thread_key, thread_ends) == 0;
    start_region();
    fl_gpu_start(fl_runtime.active ? &fl_runtime.region : NULL, &fl_runtime.options);
    fl_route.thread_ends = note_thread;
    fl_route.first_large = first_large;
    fl_route.tune_next = tune_next;
    if (fl_runtime.active) {
        fl_home_settle();
    }
    log_choice();
    fl_live_start();
    if (!fl_runtime.active) {
        fl_route.threshold = SIZE_MAX;
    }
}
