/* A step as it happens: a life for each request, its end written by what frees the block.
 *
 * The last few steps are kept, in turn: what outlives its step is freed in a later one, and what
 * the packer learns from are steps that were alike. A free finds its life by two numbers in the
 * block's descriptor: whose request it was, and which. When that life is another block's by now the
 * plan is a little wrong, and no more. */
#include "plan/context.h"

uint64_t fl_record_mix(uint64_t hash, uint64_t size)
{
    return (hash ^ size >> 12) * UINT64_C(0x100000001b3); /* FNV's prime; sizes are whole pages */
}

/* The record under way, and those before it. Any thread: one that frees looks for a life. */
static struct fl_record *nth_newest(struct fl_step_context *c, unsigned i)
{
    unsigned newest = __atomic_load_n(&c->learn.newest, __ATOMIC_RELAXED);

    fl_assert(i < FL_MERGE_STEPS && newest < FL_MERGE_STEPS);
    return &c->learn.record[(newest + FL_MERGE_STEPS - i) % FL_MERGE_STEPS];
}

/* The time of the next event. Others who free read it. */
static uint64_t tick(struct fl_step_context *c)
{
    uint64_t now = c->learn.clock + 1;

    __atomic_store_n(&c->learn.clock, now, __ATOMIC_RELAXED);
    return now;
}

/* Room for all records. */
static void map_records(struct fl_step_context *c)
{
    struct fl_life *life =
        fl_sys_is_confined() ? NULL : fl_context_part(c->who.id, FL_PART_RECORDS);

    for (unsigned i = 0; i < FL_MERGE_STEPS && life != NULL; i++, life += FL_LIVES_MOST) {
        __atomic_store_n(&c->learn.record[i].life, life, __ATOMIC_RELAXED);
    }
}

void fl_record_begin(struct fl_step_context *c)
{
    unsigned i = (c->learn.newest + 1) % FL_MERGE_STEPS;
    struct fl_record *rec = &c->learn.record[i];

    fl_assert(atomic_load(&c->job.state) == FL_JOB_NONE); /* the worker reads no record */
    if (rec->life == NULL) {
        map_records(c);
    }
    c->learn.recording = rec->life != NULL;
    if (c->learn.recording) {
        __atomic_store_n(&rec->n, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&rec->first, c->learn.requests + 1, __ATOMIC_RELAXED);
        rec->begin = rec->end = c->learn.clock;
        rec->hash = 0;
        rec->full = rec->closed = rec->complete = false;
        __atomic_store_n(&c->learn.newest, i, __ATOMIC_RELAXED);
    }
}

static bool is_repeated(const struct fl_record *a, const struct fl_record *b)
{
    return a->closed && b->closed && a->hash == b->hash && a->n == b->n;
}

void fl_record_end(struct fl_step_context *c)
{
    struct fl_record *rec = nth_newest(c, 0), *before = nth_newest(c, 1);

    if (!c->learn.recording) {
        return;
    }
    fl_assert(!rec->closed && rec->life != NULL && rec->n <= FL_LIVES_MOST);
    rec->end = tick(c);
    rec->closed = !rec->full && rec->n != 0;
    before->complete = before->closed;
    c->learn.sampled += rec->n != 0;
    c->learn.stable = is_repeated(before, rec) ? c->learn.stable + 1 : 0;
    fl_stats_add(&c->stats.recorded, before->complete);
    if (fl_plan.config.trace != NULL && before->complete) {
        fl_trace_step(c, before);
    }
    c->learn.recording = false;
}

/* They are not found any more. They stay mapped, and what was read from them before is as it was,
 * but for late frees. */
void fl_record_drop_all(struct fl_step_context *c)
{
    c->learn.recording = false;
    c->learn.sampled = c->learn.stable = 0;
    for (struct fl_record *rec = c->learn.record; rec < c->learn.record + FL_MERGE_STEPS; rec++) {
        __atomic_store_n(&rec->n, 0, __ATOMIC_RELAXED);
        rec->closed = rec->complete = false;
    }
}

/* Where its memory was taken. What comes into memory by its first touch (`lazy`, first-touch) lies
 * where that was, which is not seen. */
static uint8_t node_of(const struct fl_extent *e)
{
    unsigned nodes = fl_plan.region->zones.placing.nodes;
    const struct fl_extent *at = e->content == FL_CONTENT_INNER ? e->inner->outer : e;
    unsigned zone = __atomic_load_n(&at->zone, __ATOMIC_RELAXED);

    return (uint8_t)(nodes == 0 ? 0 : zone < 2 * nodes ? zone % nodes : FL_LIFE_ANY_NODE);
}

static void add_life(struct fl_step_context *c, struct fl_extent *e, size_t align)
{
    struct fl_record *rec = nth_newest(c, 0);

    fl_assert(rec->life != NULL && !rec->closed && rec->n <= FL_LIVES_MOST);
    if (rec->n == FL_LIVES_MOST) {
        rec->full = true;
        return;
    }
    struct fl_life *life = &rec->life[rec->n];
    life->size = life->asked = e->len;
    life->birth = c->learn.clock;
    __atomic_store_n(&life->death, FL_LIFE_NEVER, __ATOMIC_RELAXED);
    life->align = align;
    life->node = node_of(e);
    __atomic_store_n(&life->zone, 0, __ATOMIC_RELAXED);
    rec->hash = fl_record_mix(rec->hash, e->len);
    __atomic_store_n(&rec->n, rec->n + 1, __ATOMIC_RELAXED);
}

/* A step that we know may have begun. */
static void look_for_known(struct fl_step_context *c, size_t len)
{
    fl_assert(c->serve.layout == NULL);
    c->serve.recent[c->serve.step.requests++ % FL_SIGNATURE] = len;
    if (c->serve.step.requests == FL_SIGNATURE) {
        struct fl_layout *l = fl_replay_recognise(c, NULL);
        if (l != NULL) {
            fl_context_resume(c, l);
        }
    }
}

void fl_plan_saw(struct fl_extent *e, size_t align)
{
    struct fl_step_context *c = fl_plan_mine;

    if (c == NULL || fl_region_busy() ||
        atomic_exchange_explicit(&c->inside, true, memory_order_relaxed)) {
        return;
    }
    if (c->serve.layout == NULL) {
        look_for_known(c, e->len);
    }
    (void)tick(c);
    if (c->learn.recording) {
        add_life(c, e, align);
    }
    __atomic_store_n(&c->learn.requests, c->learn.requests + 1, __ATOMIC_RELAXED);
    e->life = c->learn.requests;
    e->watcher = (uint16_t)c->who.id;
    atomic_store_explicit(&c->inside, false, memory_order_relaxed);
}

/* Is the request of the thread that has the context now? Another one had it before. Any thread. */
static bool is_current(const struct fl_step_context *c, uint32_t request)
{
    uint32_t last = __atomic_load_n(&c->learn.requests, __ATOMIC_RELAXED);

    return last - request < last - __atomic_load_n(&c->learn.before, __ATOMIC_RELAXED);
}

static struct fl_life *find_life(struct fl_step_context *c, uint32_t request)
{
    for (unsigned i = 0; i < FL_MERGE_STEPS; i++) {
        struct fl_record *rec = nth_newest(c, i);
        struct fl_life *life = __atomic_load_n(&rec->life, __ATOMIC_RELAXED);
        uint32_t at = request - __atomic_load_n(&rec->first, __ATOMIC_RELAXED);
        /* NULL: its thread has just ended */
        if (life != NULL && at < __atomic_load_n(&rec->n, __ATOMIC_RELAXED)) {
            return life + at;
        }
    }
    return NULL;
}

static void end_life(struct fl_step_context *c, uint32_t request, uint64_t when)
{
    struct fl_life *life = find_life(c, request);

    if (life != NULL) {
        __atomic_store_n(&life->death, when, __ATOMIC_RELAXED);
    }
}

bool fl_record_mark(struct fl_step_context *c, uint32_t request, uint32_t zone)
{
    struct fl_life *life = find_life(c, request);

    if (life != NULL) {
        __atomic_store_n(&life->zone, zone, __ATOMIC_RELAXED);
    }
    return life != NULL;
}

void fl_plan_saw_resize(const struct fl_extent *e)
{
    struct fl_life *life = find_life(fl_plan.context[e->watcher], e->life);

    fl_assert(e->life != 0 && e->watcher < atomic_load(&fl_plan.ncontexts));
    if (life != NULL && e->len > life->size) {
        __atomic_store_n(&life->size, e->len, __ATOMIC_RELAXED);
    }
}

void fl_plan_saw_free(uint32_t watcher, uint32_t life)
{
    struct fl_step_context *c = fl_plan.context[watcher];

    fl_assert(life != 0 && watcher < atomic_load(&fl_plan.ncontexts));
    if (!is_current(c, life)) {
        return;
    }
    if (fl_plan_mine == NULL || c != fl_plan_mine || fl_region_busy() ||
        atomic_exchange_explicit(&c->inside, true, memory_order_relaxed)) {
        end_life(c, life, __atomic_load_n(&c->learn.clock, __ATOMIC_RELAXED) + 1);
        return;
    }
    end_life(c, life, tick(c));
    atomic_store_explicit(&c->inside, false, memory_order_relaxed);
}

static struct fl_lives lives_of(const struct fl_record *rec)
{
    return (struct fl_lives){rec->life, rec->n, rec->begin, rec->end, rec->hash};
}

/* Were there as many requests in another step, of other sizes? */
static bool varies(struct fl_step_context *c, const struct fl_record *a)
{
    for (unsigned i = 0; i < FL_MERGE_STEPS; i++) {
        const struct fl_record *b = nth_newest(c, i);
        if (b->closed && b->n == a->n && b->hash != a->hash) {
            return true;
        }
    }
    return false;
}

/* Has `a` all requests of `b` in their order, but for a few? */
static bool covers(const struct fl_record *a, const struct fl_record *b)
{
    size_t at = 0, unknown = 0;

    for (size_t i = 0; i < b->n; i++) {
        size_t end = fl_min(a->n, at + FL_AHEAD), k = at;
        while (k < end && a->life[k].asked != b->life[i].asked) {
            k++;
        }
        at = k < end ? k + 1 : at;
        unknown += k >= end;
        if (unknown > b->n / FL_BAD_PART) {
            return false;
        }
    }
    return true;
}

/* The complete steps with it: but for one, has it all that the others have? */
static bool covers_all(struct fl_step_context *c, const struct fl_record *a)
{
    unsigned others = 0;

    for (unsigned i = 1; i < FL_MERGE_STEPS && others <= 1; i++) {
        const struct fl_record *b = nth_newest(c, i);
        others += b->complete && b->hash != a->hash && !covers(a, b);
    }
    return others <= 1;
}

static bool knows(const struct fl_step_context *c, const struct fl_record *rec)
{
    return fl_context_find_known(c, rec->hash, rec->n) < FL_LAYOUTS;
}

/* The longest complete step that the next one repeated to the byte; `in_turn`: or any later one, as
 * where steps have several forms, of which it is to be the one that has all. */
static unsigned find_repeated(struct fl_step_context *c, bool in_turn, struct fl_lives *out)
{
    unsigned n = 0;

    for (unsigned i = 1; i < FL_MERGE_STEPS; i++) {
        const struct fl_record *a = nth_newest(c, i);
        bool found = false;
        for (unsigned j = in_turn ? 0 : i - 1; j < i; j++) {
            found = found || is_repeated(a, nth_newest(c, j));
        }
        if (found && a->complete && !knows(c, a) && !varies(c, a) && (n == 0 || a->n > out[0].n) &&
            (!in_turn || covers_all(c, a))) {
            out[0] = lives_of(a);
            n = 1;
        }
    }
    return n;
}

/* Did a step ask for so many bytes about there? */
static bool has_about(const struct fl_lives *s, size_t at, uint64_t asked)
{
    enum { ABOUT = 2 };
    size_t k = at < ABOUT ? 0 : at - ABOUT;

    while (k < s->n && k <= at + ABOUT && s->life[k].asked != asked) {
        k++;
    }
    return k < s->n && k <= at + ABOUT;
}

/* Of what the newest step asks for that the one before did not, did older ones ask for half? Else
 * none will be as one before, and memory would move in each. */
static bool sizes_repeat(const struct fl_lives *s, unsigned n)
{
    uint64_t all = 0, differ = 0, again = 0;

    for (size_t i = 0; i < s->n; i++) {
        uint64_t asked = s->life[i].asked;
        unsigned j = 1;
        while (j < n && !has_about(&s[j], i, asked)) {
            j++;
        }
        all += asked;
        differ += j > 1 ? asked : 0;
        again += j > 1 && j < n ? asked : 0;
    }
    return differ <= all / FL_BAD_PART || again > differ / 2;
}

unsigned fl_record_ready(struct fl_step_context *c, struct fl_lives out[static FL_MERGE_STEPS])
{
    unsigned n = c->learn.stable > fl_plan.config.stable ? find_repeated(c, false, out) : 0;

    if (n != 0 || c->learn.sampled <= fl_plan.config.max ||
        (c->serve.layout != NULL && c->serve.mismatched_steps == 0)) {
        return n;
    }
    if (find_repeated(c, true, out) != 0) {
        return 1;
    }
    for (unsigned i = 0; i < FL_MERGE_STEPS; i++) {
        const struct fl_record *rec = nth_newest(c, i);
        if (rec->complete) {
            out[n++] = lives_of(rec);
        }
    }
    if (n == 0 || knows(c, nth_newest(c, 1))) {
        return 0;
    }
    bool wanted = atomic_load_explicit(&c->who.asked, memory_order_relaxed) || sizes_repeat(out, n);
    return wanted ? n : 0;
}
