/* The ring, and the ring as a Chrome trace. */
#include "stats/stats.h"

#include <errno.h>
#include <unistd.h>

enum { TEXT_BYTES = 16384, LONGEST = 512 }; /* bytes: of one append; of one event's text */
static const uint64_t WRITING = UINT64_MAX; /* for an event's number */

struct fl_timeline *fl_timeline;

/* The calling thread, as long as it is in the process that asked. */
static _Thread_local struct {
    uint32_t tid;
    uint64_t first; /* fl_timeline->first by then */
} self;

int fl_timeline_begin(void)
{
    uintptr_t base;
    size_t len = fl_align_up(sizeof *fl_timeline, fl_page.base);
    int rc = fl_sys.reserve(len, &base);

    if (rc == 0 && (rc = fl_sys.commit((struct fl_range){base, len})) != 0) {
        (void)fl_sys.unmap((struct fl_range){base, len});
    }
    if (rc == 0) {
        (void)fl_sys.name((struct fl_range){base, len}, "faultless:timeline");
        fl_timeline = (struct fl_timeline *)base; /* NOLINT(performance-no-int-to-ptr) */
    }
    return rc;
}

void fl_timeline_fork_child(void)
{
    if (fl_timeline != NULL) {
        fl_timeline->first = atomic_load(&fl_timeline->count);
        self.tid = 0;
    }
}

static uint32_t tid_of_mine(void)
{
    if (self.tid == 0 || self.first != fl_timeline->first) {
        self.tid = fl_sys_is_confined() ? 0 : (uint32_t)fl_call_tid();
        self.first = fl_timeline->first;
    }
    return self.tid;
}

/* The place of event `number` is the caller's to write. False: another is at it, or it has a later
 * event already: then the caller was a whole ring late, and its event is left out. */
static bool claim(struct fl_timeline_event *e, uint64_t number)
{
    uint64_t was = atomic_load_explicit(&e->number, memory_order_relaxed);

    return was < number &&
           atomic_compare_exchange_strong_explicit(&e->number, &was, WRITING, memory_order_relaxed,
                                                   memory_order_relaxed);
}

void fl_timeline_add(enum fl_timeline_kind kind, uint64_t from_ns, uint64_t value)
{
    fl_assert(kind < FL_TIMELINE_KINDS);
    uint64_t now = fl_sys.now_ns();
    uint64_t i = atomic_fetch_add_explicit(&fl_timeline->count, 1, memory_order_relaxed);
    struct fl_timeline_event *e = &fl_timeline->event[i % FL_TIMELINE_EVENTS];

    if (!claim(e, i + 1)) {
        return;
    }
    /* release: a reader that sees a field of this event sees that the place is no more whole; one
     * that sees its number sees all of them. Pairs with the acquires in take. */
    __atomic_store_n(&e->at_ns, from_ns != 0 ? from_ns : now, __ATOMIC_RELEASE);
    __atomic_store_n(&e->lasts_ns, from_ns != 0 ? now - from_ns : 0, __ATOMIC_RELEASE);
    __atomic_store_n(&e->value, value, __ATOMIC_RELEASE);
    __atomic_store_n(&e->tid, tid_of_mine(), __ATOMIC_RELEASE);
    __atomic_store_n(&e->kind, kind, __ATOMIC_RELEASE);
    atomic_store_explicit(&e->number, i + 1, memory_order_release);
}

/* A copy of event `number`. False: it is being written, or has been written over. */
static bool take(uint64_t number, struct fl_timeline_event *out)
{
    fl_assert(number != 0);
    const struct fl_timeline_event *e = &fl_timeline->event[(number - 1) % FL_TIMELINE_EVENTS];

    if (atomic_load_explicit(&e->number, memory_order_acquire) != number) {
        return false;
    }
    out->at_ns = __atomic_load_n(&e->at_ns, __ATOMIC_ACQUIRE);
    out->lasts_ns = __atomic_load_n(&e->lasts_ns, __ATOMIC_ACQUIRE);
    out->value = __atomic_load_n(&e->value, __ATOMIC_ACQUIRE);
    out->tid = __atomic_load_n(&e->tid, __ATOMIC_ACQUIRE);
    out->kind = __atomic_load_n(&e->kind, __ATOMIC_ACQUIRE);
    return atomic_load_explicit(&e->number, memory_order_relaxed) == number &&
           out->kind < FL_TIMELINE_KINDS;
}

static void put(struct fl_text *t, const struct fl_timeline_event *e, int pid)
{
    static const struct {
        const char *name, *value;
        char phase;
    } words[FL_TIMELINE_KINDS] = {
        [FL_TIMELINE_STEP] = {"step", "context", 'X'},
        [FL_TIMELINE_STALL] = {"stall", "bytes", 'X'},
        [FL_TIMELINE_POPULATE] = {"populate", "bytes", 'X'},
        [FL_TIMELINE_MOVE] = {"move", "bytes", 'X'},
        [FL_TIMELINE_PURGE] = {"purge", "bytes", 'X'},
        [FL_TIMELINE_RELEASE] = {"release: memory is short", "times", 'i'},
        [FL_TIMELINE_PLAN] = {"plan made", "bytes", 'i'},
        [FL_TIMELINE_DROP] = {"plan given up", "context", 'i'},
        [FL_TIMELINE_GPU_TAKE] = {"GPU: from the driver", "bytes", 'X'},
        [FL_TIMELINE_GPU_GIVE] = {"GPU: to the driver", "bytes", 'X'},
        [FL_TIMELINE_GPU_PIN] = {"GPU: registration", "bytes", 'X'},
        [FL_TIMELINE_GPU_WAIT] = {"GPU: copies awaited", "times", 'X'},
    };
    bool is_step = e->kind == FL_TIMELINE_STEP;
    const struct fl_chrome_arg arg[] = {
        {words[e->kind].value, NULL, (int64_t)(is_step ? e->value / 2 : e->value)},
        {"planned", NULL, (int64_t)(e->value & 1)},
    };

    fl_chrome_event(t,
                    &(struct fl_chrome_event){.phase = words[e->kind].phase,
                                              .name = words[e->kind].name,
                                              .pid = pid,
                                              .tid = (int)e->tid,
                                              .at_ns = e->at_ns,
                                              .lasts_ns = e->lasts_ns,
                                              .arg = arg,
                                              .args = is_step ? 2 : 1},
                    false);
}

static void put_head(struct fl_text *t, int pid, const char *program, uint64_t left_out)
{
    const struct fl_chrome_arg arg[] = {{"name", program, 0},
                                        {"events left out before", NULL, (int64_t)left_out}};

    fl_chrome_head(t);
    fl_chrome_event(
        t,
        &(struct fl_chrome_event){
            .phase = 'M', .name = "process_name", .pid = pid, .tid = pid, .arg = arg, .args = 2},
        true);
}

int fl_timeline_write(const char *path, int pid, const char *program)
{
    static char buf[TEXT_BYTES]; /* too large for a small stack */
    struct fl_text t = fl_text_on(buf, sizeof buf);
    uint64_t all = atomic_load(&fl_timeline->count), first = fl_timeline->first;
    uint64_t from = all - first > FL_TIMELINE_EVENTS ? all - FL_TIMELINE_EVENTS : first;

    put_head(&t, pid, program, from - first);
    int rc = fl_sys.replace_file(path, buf, t.len);
    t = fl_text_on(buf, sizeof buf);
    for (uint64_t number = from + 1; number <= all && rc == 0; number++) {
        struct fl_timeline_event e;
        if (take(number, &e)) {
            put(&t, &e, pid);
        }
        if (t.len > sizeof buf - LONGEST) {
            rc = fl_sys.append_file(path, buf, t.len);
            t = fl_text_on(buf, sizeof buf);
        }
    }
    fl_chrome_tail(&t);
    return rc == 0 ? fl_sys.append_file(path, buf, t.len) : rc;
}
