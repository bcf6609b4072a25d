#include "oracle.h"

struct oracle oracle;
struct post post[POSTS];

static struct owned next_block(struct worker *w, size_t n)
{
    return (struct owned){NULL, n, owned_mark(w->owner + (w->alone ? ALONE : 0), ++w->serial)};
}

/* ---- one operation ---- */

/* Small blocks are the next allocator's, which no handler may interrupt that may need it, too. */
static size_t allowed(size_t n)
{
    return oracle.signals && n < LARGE ? LARGE : n;
}

static void resize(struct worker *w, struct owned *b, size_t n)
{
    n = allowed(n);
    struct owned more = next_block(w, n);

    more.p = realloc(b->p, n);
    CHECK(more.p != NULL);
    owned_check_at(b, more.p, n < b->n ? n : b->n, "realloc");
    owned_write(&more);
    *b = more;
    w->operations++;
}

static struct owned make(struct worker *w, const struct request *r, size_t n)
{
    n = allowed(n);
    size_t first = allowed(r->how == LONGER ? n / 2 : r->how == SHORTER ? n + n / 2 : n);
    struct owned b = next_block(w, first);
    void *p = NULL;

    if (r->how == CALLOC) {
        p = calloc(1, first);
    } else if (r->how == ALIGNED) {
        CHECK(posix_memalign(&p, r->align, first) == 0 && (uintptr_t)p % r->align == 0);
    } else {
        p = malloc(first);
    }
    CHECK(p != NULL);
    b.p = p;
    if (r->how == CALLOC) {
        owned_check_zero(&b);
    }
    owned_write(&b);
    w->operations++;
    if (first != n) {
        resize(w, &b, n);
    }
    return b;
}

static void drop(struct worker *w, struct owned *b, const char *when)
{
    if (b->p != NULL) {
        owned_drop(b, when);
        w->operations++;
    }
}

bool exchange(uint64_t *random, struct owned *b)
{
    struct post *at = &post[draw(random, POSTS)];

    if (atomic_flag_test_and_set_explicit(&at->busy, memory_order_acquire)) {
        return false;
    }
    struct owned other = at->block;
    at->block = *b;
    *b = other;
    atomic_flag_clear_explicit(&at->busy, memory_order_release);
    return true;
}

/* In a child other threads' blocks may be half-written. */
static void hand_over(struct worker *w, struct owned *b)
{
    if (!w->alone && b->p != NULL && exchange(&w->random, b)) {
        drop(w, b, "freed for another thread");
    }
}

/* ---- steps ---- */

static size_t some_size(struct worker *w)
{
    size_t from = (size_t)LARGE << draw(&w->random, 4);
    uint64_t rare = draw(&w->random, 256);

    if (rare == 0) {
        return 4 * MIB + draw(&w->random, 8 * MIB);
    }
    return rare < 3 ? 32 * KIB + draw(&w->random, 32 * KIB) : from + draw(&w->random, from);
}

static struct request some_request(struct worker *w)
{
    struct request r = {some_size(w), 0, MALLOC, one_in(w, 16)};
    uint64_t how = draw(&w->random, 256);

    if (how < 2) { /* these clear or copy, and take long: few */
        r.how = CALLOC;
    } else if (how < 4) {
        r.how = how == 2 ? LONGER : SHORTER;
    } else if (how < 16) {
        r.how = ALIGNED;
        r.align = (size_t)4096 << draw(&w->random, 10);
    }
    return r;
}

static void some_shape(struct worker *w, struct shape *s)
{
    unsigned due[REQUESTS];

    *s = (struct shape){.n = 8 + (unsigned)draw(&w->random, REQUESTS - 8)};
    for (unsigned i = 0; i < s->n; i++) {
        s->request[i] = some_request(w);
        due[i] = i + 1 + (unsigned)draw(&w->random, 24);
        if (due[i] >= s->n && !one_in(w, 4)) {
            due[i] = s->n - 1;
        }
    }
    for (unsigned now = 0; now < s->n; now++) {
        for (unsigned i = 0; i < s->n; i++) {
            if (due[i] == now + s->n) {
                s->event[s->events++] = (struct event){FREE_LAST, i};
            }
        }
        s->event[s->events++] = (struct event){MAKE, now};
        for (unsigned i = 0; i <= now; i++) {
            if (due[i] == now) {
                s->event[s->events++] = (struct event){FREE, i};
            }
        }
    }
}

void check_all(const struct worker *w, const char *when)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        owned_check(&w->live[0][i], when);
        owned_check(&w->live[1][i], when);
    }
    for (size_t i = 0; i < LASTING; i++) {
        owned_check(&w->lasting[i], when);
    }
    for (size_t i = 0; i < STAY; i++) {
        owned_check(&oracle.stay[i], when);
    }
}

void reap(pid_t pid)
{
    int status = 0;

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0) {
        dprintf(2, "seed %llu, operation %ld: a child ended with status %#x\n",
                (unsigned long long)owned_seed, owned_operations(), (unsigned)status);
        _exit(1);
    }
    atomic_fetch_add(&oracle.forked, 1);
}

/* The child goes on with the step that it is in, for some more operations. */
static void fork_amid_step(struct worker *w)
{
    pid_t pid = fork();

    w->fork_at = NEVER;
    if (pid == 0) {
        w->alone = true;
        w->limit = w->operations + CHILD_OPERATIONS;
        check_all(w, "in a child");
        return;
    }
    reap(pid);
}

/* What comes between the requests of a step. */
static void disturb(struct worker *w)
{
    struct owned *b = &w->lasting[draw(&w->random, LASTING)];
    struct request r = some_request(w);

    if (b->p != NULL && one_in(w, 8)) {
        resize(w, b, b->n - b->n / 8 + (size_t)draw(&w->random, b->n / 4));
        return;
    }
    if (one_in(w, 2)) {
        hand_over(w, b);
    }
    drop(w, b, "freed late");
    *b = make(w, &r, r.n);
}

static void run_event(struct worker *w, const struct shape *s, struct event e)
{
    const struct request *r = &s->request[e.slot];
    struct owned *b = &w->live[w->parity ^ (e.what == FREE_LAST)][e.slot];

    if (one_in(w, w->manner == JITTER ? 128 : 4096)) {
        disturb(w);
    }
    if (one_in(w, w->manner == JITTER ? 128 : w->manner == RANDOM ? 3 : 8192)) {
        return; /* one less; what is not freed now is freed when its slot is wanted */
    }
    if (e.what != MAKE && r->posted) {
        hand_over(w, b);
    }
    drop(w, b, "freed");
    if (e.what == MAKE) {
        size_t n = w->manner == RANDOM ? some_size(w) : r->n / 64 * w->scale;
        *b = make(w, r, n);
    }
    if (w->operations >= w->fork_at) {
        fork_amid_step(w);
    }
}

/* True: it was done. Where a thread worked on since the fork took long, the child is not served,
 * and has no steps. A context that several threads have is busy while another one is in it. */
static bool call_of_step(struct worker *w, int (*call)(void *))
{
    int rc = call(w->context);
    bool is_busy = rc == -EBUSY && call == oracle.step_begin && w->context != NULL;

    if (w->alone && rc == -ENOSYS) {
        w->declared = false;
    } else if (rc != 0 && !is_busy) {
        dprintf(2, "seed %llu, operation %ld: fl_step_%s answers %d%s\n",
                (unsigned long long)owned_seed, owned_operations(),
                call == oracle.step_end ? "end" : "begin", rc, w->alone ? ", in a child" : "");
        _exit(1);
    }
    return rc == 0;
}

static void run_step(struct worker *w, long step)
{
    unsigned phase = w->manner == PHASES && step % 24 >= 16;
    const struct shape *s = &w->shape[phase];

    if (w->manner == DRIFT) {
        w->scale = 56 + draw(&w->random, 16);
    }
    bool begun = w->declared && call_of_step(w, oracle.step_begin);
    for (unsigned i = 0; i < s->events; i++) {
        run_event(w, s, s->event[i]);
    }
    if (begun && w->declared) {
        (void)call_of_step(w, oracle.step_end);
    }
    w->parity ^= 1;
}

void run_steps(struct worker *w)
{
    for (long step = 0; w->operations < w->limit; step++) {
        run_step(w, step);
    }
    if (w->alone) {
        check_all(w, "at a child's end");
        _exit(0);
    }
}

void some_steps(struct worker *w)
{
    w->scale = 64;
    w->manner = (enum manner)draw(&w->random, MANNERS);
    w->declared = oracle.step_begin != NULL && one_in(w, 2);
    some_shape(w, &w->shape[0]);
    some_shape(w, &w->shape[1]);
}

void drop_all(struct worker *w)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        drop(w, &w->live[0][i], "at the end");
        drop(w, &w->live[1][i], "at the end");
    }
    for (size_t i = 0; i < LASTING; i++) {
        drop(w, &w->lasting[i], "at the end");
    }
    for (size_t i = 0; i < CAUGHT; i++) {
        drop(w, &w->handler.block[i], "a handler's, at the end");
    }
}
