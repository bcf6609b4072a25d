/* The Chrome trace: what is told is kept in one of two halves; the thread that fills a half writes
 * it out while the other takes what comes.
 *
 * When both are full, because the file is slow, what comes is counted and left out. The file is
 * whole once the trace has ended.
 *
 * State: `t`. Lock: `mutex`, a leaf, held for some stores; to write a half it is not held. A
 * pthread mutex: the folder is a program like any other, and its callers hold locks of ranks that
 * are theirs. */
#include "gpu/trace/trace.h"

#include "gpu/driver/driver.h"
#include "gpu/trace/trace_event.h"
#include "stats/stats.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    HALF = 4096,           /* events */
    TEXT = 64 * FL_KIB,    /* bytes that are formatted before they are written */
    LONGEST = 1024,        /* bytes that one event may come to */
    APART_NS = 100 * 1000, /* from a sample of a track to the next */
};

_Atomic uint32_t fl_gpu_tracing;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint32_t sessions;          /* so many have begun */
    char path[FL_OPTION_TEXTS]; /* of this one */
    int pid;
    bool ending;      /* nothing more is taken */
    bool writing;     /* a half is being written: `text` and the file are its writer's */
    unsigned filling; /* which half takes what comes */
    size_t count;     /* events in it */
    uint64_t dropped;
    int refusal; /* the file's first error; 0: none */
    struct fl_gpu_event *half[2];
    char *text;
} t;
static const char *at_open; /* FAULTLESS_GPU_TRACE's, until it has begun. Written at boot */
static _Atomic bool at_open_done;
static _Thread_local struct {
    uint32_t session; /* that has this thread's name */
    int tid;
} self;

/* The file */

static void send(struct fl_text *out)
{
    int rc = fl_sys.append_file(t.path, out->buf, out->len);

    if (rc != 0 && t.refusal == 0) {
        t.refusal = rc;
    }
    *out = fl_text_on(t.text, TEXT);
}

/* The caller has set `writing`, or is alone. */
static void write_events(const struct fl_gpu_event *e, size_t n)
{
    struct fl_text out = fl_text_on(t.text, TEXT);

    for (size_t i = 0; i < n; i++) {
        fl_gpu_event_put(&out, &e[i], t.pid);
        if (out.len > TEXT - LONGEST) {
            send(&out);
        }
    }
    send(&out);
}

/* Head and process name: there is always an event before the next. */
static int write_head(void)
{
    char program[64];
    struct fl_text out = fl_text_on(t.text, TEXT);

    if (fl_sys.read_file("/proc/self/comm", program, sizeof program) != 0) {
        program[0] = '\0';
    }
    const struct fl_chrome_arg arg[] = {{"name", program, 0}};
    fl_chrome_head(&out);
    fl_chrome_event(&out,
                    &(struct fl_chrome_event){.phase = 'M',
                                              .name = "process_name",
                                              .pid = t.pid,
                                              .tid = t.pid,
                                              .arg = arg,
                                              .args = 1},
                    true);
    return fl_sys.replace_file(t.path, out.buf, out.len);
}

static void write_tail(void)
{
    struct fl_text out = fl_text_on(t.text, TEXT);

    if (t.dropped != 0) {
        const struct fl_chrome_arg arg[] = {{"events", NULL, (int64_t)t.dropped}};
        fl_chrome_event(&out,
                        &(struct fl_chrome_event){.phase = 'i',
                                                  .name = "left out",
                                                  .pid = t.pid,
                                                  .tid = t.pid,
                                                  .at_ns = fl_sys.now_ns(),
                                                  .arg = arg,
                                                  .args = 1},
                        false);
    }
    fl_chrome_tail(&out);
    send(&out);
}

/* What is told */

/* With the mutex held; gives it back for as long as a half is written. */
static void keep(const struct fl_gpu_event *e)
{
    if (t.count == HALF) {
        t.dropped++;
        return;
    }
    t.half[t.filling][t.count++] = *e;
    if (t.writing) {
        return;
    }
    t.writing = true;
    while (t.count == HALF) { /* again, when the other was filled meanwhile */
        const struct fl_gpu_event *full = t.half[t.filling];
        t.filling ^= 1;
        t.count = 0;
        (void)pthread_mutex_unlock(&mutex);
        write_events(full, HALF);
        (void)pthread_mutex_lock(&mutex);
    }
    t.writing = false;
}

/* The mutex is held when this returns true. */
static bool begin_telling(void)
{
    uint32_t session;

    if (self.tid == 0) {
        self.tid = fl_call_tid();
    }
    (void)pthread_mutex_lock(&mutex);
    session = atomic_load_explicit(&fl_gpu_tracing, memory_order_relaxed);
    if (session == 0 || t.ending) {
        (void)pthread_mutex_unlock(&mutex);
        return false;
    }
    if (self.session != session) {
        struct fl_gpu_event e = {.kind = FL_GPU_EVENT_THREAD, .tid = self.tid};
        self.session = session;
        (void)prctl(PR_GET_NAME, e.thread);
        keep(&e);
    }
    return true;
}

static void sample(struct fl_gpu_track *k, uint64_t at_ns)
{
    struct fl_gpu_event e = {.kind = k->kind == FL_GPU_TRACK_POOL ? FL_GPU_EVENT_FIGURES
                                                                  : FL_GPU_EVENT_COPIES,
                             .tid = self.tid,
                             .device = k->device,
                             .number = k->number,
                             .target = k->target,
                             .at_ns = at_ns};

    memcpy(e.value, &k->last, sizeof e.value);
    k->written_ns = at_ns;
    k->due = false;
    keep(&e);
}

_Static_assert(sizeof(struct fl_gpu_figures) == sizeof(uint64_t[4]), "an event holds them");

/* When what was told last may be written. */
static uint64_t due_ns(const struct fl_gpu_track *k)
{
    uint64_t from = k->written_ns == 0 ? 0 : k->written_ns + APART_NS;

    return k->told_ns > from ? k->told_ns : from;
}

static struct fl_gpu_figures copies_of(struct fl_gpu_track *k)
{
    return (struct fl_gpu_figures){
        atomic_load_explicit(&k->copies, memory_order_relaxed),
        atomic_load_explicit(&k->copied_bytes, memory_order_relaxed),
        atomic_load_explicit(&k->stalls, memory_order_relaxed),
        atomic_load_explicit(&k->stall_ns, memory_order_relaxed),
    };
}

/* `now` is not before what was told last. */
static void tell(struct fl_gpu_track *k, const struct fl_gpu_figures *f, uint64_t now)
{
    if (k->session != self.session) {
        k->session = self.session;
        k->due = false;
        k->written_ns = 0;
    } else if (memcmp(&k->last, f, sizeof *f) == 0) {
        return;
    }
    if (k->due && now >= due_ns(k) + APART_NS) { /* it stood for a while: it is seen */
        sample(k, due_ns(k));
    }
    k->last = *f;
    k->told_ns = now;
    k->due = true;
    if (now >= due_ns(k)) {
        sample(k, now);
    }
}

void fl_gpu_trace_figures(struct fl_gpu_track *k, const struct fl_gpu_figures *f)
{
    if (begin_telling()) {
        tell(k, f, fl_sys.now_ns());
        (void)pthread_mutex_unlock(&mutex);
    }
}

void fl_gpu_trace_copies(struct fl_gpu_track *k)
{
    if (begin_telling()) {
        const struct fl_gpu_figures f = copies_of(k);
        tell(k, &f, fl_sys.now_ns());
        (void)pthread_mutex_unlock(&mutex);
    }
}

void fl_gpu_trace_due(struct fl_gpu_track *k)
{
    if (begin_telling()) {
        if (k->due && k->session == self.session) {
            sample(k, due_ns(k));
        }
        (void)pthread_mutex_unlock(&mutex);
    }
}

void fl_gpu_trace_call(const char *name, uint64_t start_ns, uint64_t end_ns, size_t bytes, int rc)
{
    if (start_ns != 0 && end_ns >= start_ns && begin_telling()) {
        keep(&(struct fl_gpu_event){.kind = FL_GPU_EVENT_CALL,
                                    .tid = self.tid,
                                    .name = name,
                                    .at_ns = start_ns,
                                    .lasts_ns = end_ns - start_ns,
                                    .value = {bytes},
                                    .rc = rc});
        (void)pthread_mutex_unlock(&mutex);
    }
}

void fl_gpu_trace_instant(const char *name, int device, uint64_t value)
{
    if (begin_telling()) {
        keep(&(struct fl_gpu_event){.kind = FL_GPU_EVENT_INSTANT,
                                    .tid = self.tid,
                                    .device = device,
                                    .name = name,
                                    .at_ns = fl_sys.now_ns(),
                                    .value = {value}});
        (void)pthread_mutex_unlock(&mutex);
    }
}

/* Begin and end */

static bool have_buffers(void)
{
    if (t.text == NULL) {
        char *text = malloc(TEXT + (size_t)2 * HALF * sizeof(struct fl_gpu_event));
        if (text == NULL) {
            return false;
        }
        t.half[0] = (struct fl_gpu_event *)(void *)(text + TEXT);
        t.half[1] = t.half[0] + HALF;
        t.text = text;
    }
    return true;
}

/* %p is the process's number. False: too long. */
static bool take_path(const char *path)
{
    struct fl_text out = fl_text_on(t.path, sizeof t.path);

    for (; *path != '\0' && out.len < sizeof t.path - 24; path++) {
        const char c[2] = {*path, '\0'};
        if (path[0] == '%' && path[1] == 'p') {
            fl_text_u64(&out, (uint64_t)fl_call_pid());
            path++;
        } else {
            fl_text_str(&out, c);
        }
    }
    return *path == '\0' && out.len != 0;
}

static int begin(const char *path)
{
    int rc;

    if (atomic_load_explicit(&fl_gpu_tracing, memory_order_relaxed) != 0 || t.writing || t.ending) {
        return fl_gpu_fail(-EBUSY, "there is a trace");
    }
    if (!take_path(path)) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_trace_begin: not the name of a file");
    }
    if (!have_buffers()) {
        return fl_gpu_fail(-ENOMEM, "no memory for a trace");
    }
    t.pid = fl_call_pid();
    rc = write_head();
    if (rc != 0) {
        return fl_gpu_fail(rc, "the file of the trace cannot be written");
    }
    t.filling = 0;
    t.count = 0;
    t.dropped = 0;
    t.refusal = 0;
    t.sessions++;
    atomic_store_explicit(&fl_gpu_tracing, t.sessions, memory_order_relaxed);
    return 0;
}

int fl_gpu_trace_begin(const char *path)
{
    int rc;

    if (path == NULL) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_trace_begin: no file");
    }
    if (fl_gpu_is_forked()) {
        return fl_gpu_fail(-ECHILD, "a fork's child: the trace is its parent's");
    }
    (void)pthread_mutex_lock(&mutex);
    rc = begin(path);
    (void)pthread_mutex_unlock(&mutex);
    return rc;
}

/* No other thread writes, or begins to. Lock: the mutex, held. */
static void be_alone(void)
{
    t.ending = true;
    while (t.writing) {
        (void)pthread_mutex_unlock(&mutex);
        (void)usleep(100);
        (void)pthread_mutex_lock(&mutex);
    }
}

int fl_gpu_trace_end(void)
{
    int rc;

    if (!fl_gpu_is_traced()) {
        return fl_gpu_fail(-EINVAL, "there is no trace");
    }
    fl_gpu_tracks_due();
    (void)pthread_mutex_lock(&mutex);
    if (!fl_gpu_is_traced() || t.ending) {
        (void)pthread_mutex_unlock(&mutex);
        return fl_gpu_fail(-EINVAL, "there is no trace");
    }
    be_alone();
    atomic_store_explicit(&fl_gpu_tracing, 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&mutex);
    write_events(t.half[t.filling], t.count);
    write_tail();
    (void)pthread_mutex_lock(&mutex);
    rc = t.refusal;
    t.ending = false;
    (void)pthread_mutex_unlock(&mutex);
    return rc == 0 ? 0 : fl_gpu_fail(rc, "the file of the trace cannot be written");
}

void fl_gpu_trace_start(const char *path)
{
    at_open = path;
}

void fl_gpu_trace_opened(void)
{
    if (at_open != NULL && !atomic_exchange(&at_open_done, true) &&
        fl_gpu_trace_begin(at_open) != 0) {
        fl_say("the file of FAULTLESS_GPU_TRACE cannot be written");
    }
}

void fl_gpu_trace_fork_child(void)
{
    atomic_store_explicit(&fl_gpu_tracing, 0, memory_order_relaxed);
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* its holder is not in this process */
    fl_gpu_tracks_fork_child();
    t.writing = false;
    t.ending = false;
    self.tid = 0;
}
