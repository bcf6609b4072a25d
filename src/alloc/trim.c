/* malloc_trim(3), which some programs call at each step of a loop; and fl_release.
 *
 * What went back at each step would come again in the next one, by page faults. So of trims in a
 * row each leaves twice as much as the program has asked for since the one before: twice, for free
 * memory lies in pieces. A row ends with a pause of FAULTLESS_DECAY_MS, after which memory that is
 * not used goes back anyway. The first trims of a row give all back, and so does one before which
 * nothing was asked for: a program that trims once has what glibc gives. The next allocator's own
 * free memory does not age: where some is to stay here, it is passed the call once in a tick.
 * State: `trims`. Several threads may trim at once: then either count may be lost. */
#include "alloc/internal.h"

#include <errno.h>

enum { FIRST = 3 };
static const uint64_t tick_of_none = 2500000000; /* ns; where no memory ages */

static struct {
    _Atomic uint32_t mode;               /* enum fl_trim */
    _Atomic uint32_t n;                  /* in this row, before this one */
    _Atomic uint64_t last_ns, passed_ns; /* monotonic; the last one that was passed on */
    _Atomic uint64_t asked;              /* bytes, at the last one */
} trims;

void fl_trim_choose(enum fl_trim mode)
{
    atomic_store_explicit(&trims.mode, mode, memory_order_relaxed);
}

static bool is_ready(void)
{
    return atomic_load_explicit(&fl_route.booted, memory_order_acquire) == FL_BOOT_DONE;
}

/* Region's memory that no block has. */
static size_t idle(void)
{
    struct fl_stats_values v = {.active = 1};

    fl_region_stats_read(fl_route.region, &v);
    return v.cached_bytes + v.free_held_bytes + v.stock_bytes;
}

/* Where there is no more than that, threads keep their caches. */
static size_t trim_region(size_t pad)
{
    return pad != 0 && idle() <= pad ? 0 : fl_region_trim(fl_route.region, pad);
}

size_t fl_trim(size_t pad)
{
    if (!is_ready() || fl_region_busy()) {
        return 0;
    }
    size_t plans = pad == 0 ? fl_plan_release() : 0; /* plans hold what their next step needs */

    return plans + trim_region(pad);
}

/* Bytes of large requests, ever. */
static uint64_t asked(void)
{
    struct fl_stats_values v = {.active = 1};
    struct fl_plan_stats plan;

    fl_region_stats_read(fl_route.region, &v);
    fl_plan_stats_read(&plan);
    return v.served_bytes + plan.hit_bytes;
}

struct row {
    size_t keeps; /* bytes that this call is to leave for the next step */
    bool passes;  /* it is the next allocator's, too */
};

static struct row note_call(void)
{
    uint64_t now = fl_sys.now_ns(), bytes = asked(), pause = fl_region_decay_ns(fl_route.region);
    bool soon = pause == 0 || now - atomic_exchange(&trims.last_ns, now) < pause;
    uint32_t n = soon ? atomic_load(&trims.n) : 0;
    uint64_t since = bytes - atomic_exchange(&trims.asked, bytes);
    struct row row = {.keeps = n >= FIRST ? (size_t)fl_min(2 * since, SIZE_MAX) : 0};

    atomic_store(&trims.n, n + 1);
    uint64_t tick = pause != 0 ? pause / FL_DECAY_TICKS : tick_of_none;
    row.passes = row.keeps == 0 || now - atomic_load(&trims.passed_ns) >= tick;
    if (row.passes) {
        atomic_store(&trims.passed_ns, now);
    }
    return row;
}

int fl_trim_call(size_t pad)
{
    enum fl_trim mode = atomic_load_explicit(&trims.mode, memory_order_relaxed);
    int saved = errno;
    struct row row = {.passes = mode != FL_TRIM_IGNORE};

    if (mode == FL_TRIM_AUTO && is_ready() && !fl_region_busy()) {
        row = note_call();
    }
    bool ours = mode != FL_TRIM_IGNORE && fl_trim(fl_max(pad, row.keeps)) != 0;
    errno = saved;
    int theirs = row.passes && fl_route.next.trim != NULL ? fl_route.next.trim(pad) : 0;

    return ours || theirs != 0;
}

int64_t fl_trim_to(size_t keep)
{
    struct fl_plan_stats plan;
    size_t given = 0;

    if (fl_region_busy()) {
        return -EBUSY;
    }
    if (!is_ready()) {
        return 0;
    }
    fl_plan_stats_read(&plan);
    if (plan.free_bytes > keep) {
        given = fl_plan_release();
        fl_plan_stats_read(&plan);
    }
    given += trim_region(keep - fl_min(keep, plan.free_bytes));
    return (int64_t)given;
}
