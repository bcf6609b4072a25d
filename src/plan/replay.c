/* A request served from the layout.
 *
 * The step's requests are expected in their order. Where one differs it is looked for among the next few, so that one more or one
 * less shifts nothing. */
#include "plan/internal.h"
#include "plan/store/store.h"

enum { AHEAD = 8, LOST_AFTER = 64, BAD_OF_EIGHT = 3, STRANGE_MOST = 8 };
/* Steps: crowded ones in a row until another arena is taken, and how many until the next. */
enum { CROWDED_STEPS = 2, MOVE_AFTER = 32 };

static bool fits(const struct fl_seat *s, size_t len)
{
    return len - s->least <= s->most - s->least;
}

static void go_on_at(struct fl_step_context *c, const struct fl_seat *s)
{
    c->turn.next = c->counted = s;
}

/* No layout is served. A handler may see to that after the thread has read its turn: what it looks at then is a seat that nothing
 * fits. */
static void go_nowhere(struct fl_step_context *c)
{
    go_on_at(c, fl_plan_no_turn.next);
    c->end = fl_plan_no_turn.next;
}

void fl_replay_count(struct fl_step_context *c)
{
    const struct fl_seat *from = c->counted, *to = c->turn.next;

    if (from == to) {
        return;
    }
    for (const struct fl_seat *s = to - from > FL_SIGNATURE ? to - FL_SIGNATURE : from; s < to;
         s++) {
        c->recent[(c->requests_here + (size_t)(s - from)) % FL_SIGNATURE] = s->most;
    }
    c->requests_here += (uint32_t)(to - from);
    c->asked += to->before - from->before;
    c->misses_in_a_row = 0;
    fl_stats_add(&c->stats.hits, (uint64_t)(to - from));
    c->counted = to;
}

static FL_COLD struct fl_extent *in_a_gap(struct fl_step_context *c, size_t len)
{
    size_t n = fl_granules(len);
    size_t align = len >= FL_HUGE_FROM ? fl_page.huge >> FL_GRANULE_SHIFT : 1;
    size_t at = fl_arena_fit(c->arena, n, align);

    return at != SIZE_MAX ? fl_arena_take(c->arena, at, len, len) : NULL;
}

/* The last requests were the first ones of this layout. */
static bool begins_so(const struct fl_step_context *c, const struct fl_layout *l)
{
    if (l == NULL || l->n < FL_SIGNATURE || c->requests_here < FL_SIGNATURE) {
        return false;
    }
    for (uint32_t i = 0; i < FL_SIGNATURE; i++) {
        uint32_t ago = c->requests_here - FL_SIGNATURE + i;
        const struct fl_seat *seat = &l->seat[i];
        if (seat->least != seat->most || seat->most != c->recent[ago % FL_SIGNATURE]) {
            return false;
        }
    }
    return true;
}

struct fl_layout *fl_replay_recognise(const struct fl_step_context *c)
{
    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        if (begins_so(c, c->known[i])) {
            return c->known[i];
        }
    }
    return NULL;
}

void fl_replay_forgive(struct fl_step_context *c)
{
    for (unsigned k = 0; k < FL_SIGNATURE; k++) {
        c->forgiven += c->recent[k];
    }
}

/* Another step that we know may have begun; or this one again. Where steps are declared, only at their beginning. */
static bool switch_layout(struct fl_step_context *c)
{
    struct fl_layout *l = NULL;

    if (c->declared && c->requests_here > AHEAD) {
        return false;
    }
    for (unsigned i = 0; i < FL_LAYOUTS && l == NULL; i++) {
        struct fl_layout *k = c->known[i];
        bool just_begun = k == c->layout && c->turn.next - c->layout->seat <= FL_SIGNATURE;
        l = !just_begun && begins_so(c, k) ? k : NULL;
    }
    if (l == NULL && (l = fl_keep_find(c)) == NULL) {
        return false;
    }
    if (!c->declared) { /* nobody said so, but a step has begun */
        fl_context_restart(c);
        return true;
    }
    fl_replay_forgive(c);
    c->layout = l;
    fl_replay_resume(c);
    return true;
}

/* A slot that turned out too small grows when the step is over. */
static void wish(struct fl_step_context *c, const struct fl_seat *s, size_t len)
{
    struct fl_slot *slot = &c->layout->slot[s - c->layout->seat];

    if (len > slot->size && slot->kind != FL_SLOT_VARIES && slot->kind != FL_SLOT_KEPT) {
        slot->size = slot->most = len;
        slot->headroom = 0;
        c->layout->wish = true;
    }
}

/* A hit of a size that varies: how much of its headroom is of use? */
static void note_size(struct fl_step_context *c, const struct fl_seat *s, size_t len)
{
    struct fl_slot *slot = &c->layout->slot[s - c->layout->seat];

    if (FL_UNLIKELY(len > slot->most)) {
        slot->most = len;
    }
}

/* By an eighth at most. */
static bool is_about(uint64_t size, size_t len)
{
    return (size > len ? size - len : len - size) <= size / 8;
}

/* Its seat, where the step goes on after a difference, though it may be too small; NULL: it has none. */
static const struct fl_seat *find_seat(struct fl_step_context *c, size_t len)
{
    const struct fl_seat *s = c->turn.next;

    if (switch_layout(c)) {
        return NULL;
    }
    if (s == c->end) {
        return NULL;
    }
    bool varies = s->least != s->most && len / 4 <= s->most;
    for (const struct fl_seat *on = s; !varies && on < c->end && on - s <= AHEAD; on++) {
        if (on->most == len && on->least == len) { /* a size that varies proves nothing */
            return on;
        }
    }
    if (varies || (!c->layout->exact &&
                   is_about(s->most, len))) { /* it is this one, of another size than ever */
        wish(c, s, len);
        return s;
    }
    return NULL;
}

/* `excused`: it is the request that was expected, and the next steps have a place for it. */
static void count_miss(struct fl_step_context *c, size_t len, bool excused)
{
    fl_stats_bump(&c->stats.misses);
    if (!excused) {
        c->diverged++;
        c->misses_in_a_row++;
        c->missed += len;
        fl_stats_add(&c->stats.missed_bytes, len);
    }
}

/* Where the plan says; NULL: that place is taken, by a block that lives longer than it should or by another that had to go somewhere,
 * or it is too small. */
static struct fl_extent *at_seat(struct fl_step_context *c, const struct fl_seat *s, size_t len)
{
    uint32_t granule = s->granule[c->turn.parity];

    if (granule == FL_SEAT_GAP) {
        return in_a_gap(c, len);
    }
    if (len > s->most) {
        return NULL;
    }
    struct fl_extent *e = fl_arena_take(c->arena, granule, len, s->room);
    return e == NULL && fl_arena_was_thinned(c->arena)
               ? fl_arena_take(c->arena, granule, len, s->room)
               : e;
}

/* What has no seat, or cannot have it, goes the ordinary way: it may stay for ever, and would be in the
 * way in each step. That it finds memory there is the region's matter, which takes what is idle here:
 * see fl_plan_lend. */
static struct fl_extent *serve(struct fl_step_context *c, size_t len)
{
    const struct fl_seat *s = c->turn.next;

    c->recent[c->requests_here++ % FL_SIGNATURE] = len;
    c->asked += len;
    if (FL_UNLIKELY(s == c->end || !fits(s, len)) && (s = find_seat(c, len)) == NULL) {
        fl_stats_bump(&c->stats.unseated);
        count_miss(c, len, false);
        return NULL;
    }
    go_on_at(c, s + 1);
    if (s->granule[c->turn.parity] == FL_SEAT_NONE) { /* known, and not planned */
        c->asked -= len;
        return NULL;
    }
    struct fl_extent *e = at_seat(c, s, len);
    if (FL_LIKELY(e != NULL)) {
        note_size(c, s, len);
        fl_stats_bump(&c->stats.hits);
        c->misses_in_a_row = 0;
        return e;
    }
    bool grows = len > s->most;
    c->crowded += !grows;
    count_miss(c, len, c->settles || grows);
    return NULL;
}

/* Too much is asked of its address: not planned. */
static void step_over_seat(struct fl_step_context *c, size_t len)
{
    c->recent[c->requests_here++ % FL_SIGNATURE] = len;
    fl_replay_skip(c, len);
}

struct fl_extent *fl_plan_take(size_t len, size_t align)
{
    struct fl_step_context *c = fl_plan_mine;
    struct fl_extent *e = NULL;

    if (FL_UNLIKELY(atomic_load_explicit(&c->inside, memory_order_relaxed) || fl_region_busy())) {
        return NULL;
    }
    atomic_store_explicit(&c->inside, true, memory_order_relaxed);
    fl_plan_turn = &fl_plan_no_turn;
    atomic_signal_fence(memory_order_seq_cst);
    fl_replay_count(c);
    if (FL_UNLIKELY(c->turn.next == c->end && !c->declared)) { /* so this is the next one's first */
        fl_context_boundary(c);
    }
    if (FL_UNLIKELY(align > FL_GRANULE)) {
        step_over_seat(c, len);
    } else if (FL_LIKELY(c->layout != NULL)) {
        e = serve(c, len);
    }
    if (FL_UNLIKELY(c->misses_in_a_row > LOST_AFTER && !c->declared)) {
        fl_context_give_up(c);
    }
    atomic_signal_fence(memory_order_seq_cst);
    if (FL_LIKELY(fl_plan_wants == FL_PLAN_REPLAY)) {
        fl_plan_turn = &c->turn;
    }
    atomic_store_explicit(&c->inside, false, memory_order_relaxed);
    return e;
}

/* Of a size that varies: fl_replay_count does not know how long it was. */
static FL_APART void count_varying(struct fl_step_context *c, const struct fl_seat *s, size_t len)
{
    fl_replay_count(c);
    note_size(c, s, len);
    c->recent[c->requests_here++ % FL_SIGNATURE] = len;
    c->asked += len;
    c->misses_in_a_row = 0;
    fl_stats_bump(&c->stats.hits);
    c->counted++;
}

static struct fl_extent *seat_long(struct fl_turn *t, const struct fl_seat *s, size_t len)
{
    size_t first = s->granule[t->parity], n = fl_granules(len);
    struct fl_claims claims = {t->claimed, first + n}, absent = {t->absent, first + n};
    uint64_t mask = 0;

    if (FL_UNLIKELY(!fl_claims_take(&claims, first, n))) {
        return NULL;
    }
    if (FL_UNLIKELY(atomic_load_explicit(t->missing, memory_order_relaxed) != 0) &&
        !fl_claims_are_free(&absent, first, n)) {
        fl_claims_give(&claims, first, n);
        return NULL;
    }
    if (s->least != s->most) {
        count_varying((struct fl_step_context *)t, s, len); /* its first member */
        mask = fl_claims_mask(first, n);
    }
    return fl_plan_seated(t, s, len, mask);
}

struct fl_extent *fl_plan_take_long(struct fl_turn *t, size_t n)
{
    size_t len = fl_align_up(n, fl_page.base);
    struct fl_extent *e = NULL;

    fl_plan_turn = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    const struct fl_seat *s = t->next;
    if (s->word[t->parity] != FL_SEAT_NONE && fits(s, len)) {
        e = seat_long(t, s, len);
    }
    atomic_signal_fence(memory_order_seq_cst);
    fl_plan_turn = t;
    return e;
}

static size_t tallest(const struct fl_step_context *c)
{
    size_t height = 0;

    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        height = c->known[i] != NULL ? fl_max(height, c->known[i]->height) : height;
    }
    return height;
}

struct fl_arena *fl_plan_first_arena(void)
{
    fl_plan_lock();
    struct fl_arena *a = fl_plan.arenas;
    fl_plan_unlock();
    return a;
}

static struct fl_arena *new_arena(void)
{
    fl_plan_lock();
    struct fl_arena *a = fl_plan.arenas;
    while (a != NULL && (a->owned || atomic_load(&a->height) != 0)) {
        a = a->next;
    }
    if (a == NULL && (a = fl_plan_map(sizeof *a)) != NULL) {
        a->next = fl_plan.arenas;
        fl_plan.arenas = a;
    }
    if (a != NULL) {
        a->owned = true;
    }
    fl_plan_unlock();
    return a;
}

void fl_arena_let_go(struct fl_step_context *c)
{
    struct fl_arena *a = c->arena;

    if (a != NULL) {
        c->arena = NULL;
        atomic_store_explicit(&a->draining, true, memory_order_relaxed);
        (void)fl_arena_hand_on(a);
        fl_plan_lock();
        a->owned = false;
        fl_plan_unlock();
    }
}

static size_t neediest(const struct fl_step_context *c)
{
    size_t most = 0;

    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        most = c->known[i] != NULL ? fl_max(most, c->known[i]->needs) : most;
    }
    return most;
}

/* An arena that holds every layout we know. Those of one context are never in use at once, so they share it. */
static bool have_arena(struct fl_step_context *c)
{
    size_t height = tallest(c), has = c->arena != NULL ? atomic_load(&c->arena->height) : 0;

    if (has != 0 && has < height) {
        fl_arena_let_go(c);
    }
    if (c->arena == NULL && (c->arena = new_arena()) == NULL) {
        return false;
    }
    if (!fl_arena_raise(c->arena, height) && !fl_arena_open(c->arena, height)) {
        return false;
    }
    fl_arena_expect(c->arena, neediest(c));
    c->settles = c->settling != 0;
    if (c->settles) { /* what lives on from the step before lies where it did */
        c->settling--;
    } else if (height + fl_page.huge <= c->arena->limit || c->arena->lowered) {
        fl_arena_lower(c->arena, height);
    }
    return true;
}

void fl_replay_begin(struct fl_step_context *c)
{
    c->requests_here = c->diverged = c->crowded = 0;
    c->asked = c->missed = c->forgiven = 0;
    if (c->layout == NULL) {
        return;
    }
    if (!have_arena(c)) {
        go_nowhere(c);
        c->layout = NULL;
        return;
    }
    c->turn.block = c->arena->inner.block;
    c->turn.claimed = c->arena->claims.word;
    c->turn.absent = c->arena->absent.word;
    c->turn.missing = &c->arena->missing;
    atomic_store_explicit(&c->arena->used, true, memory_order_relaxed);
    go_on_at(c, c->layout->seat);
    c->end = c->layout->seat + c->layout->n;
    c->turn.parity ^= 1;
}

void fl_replay_skip(struct fl_step_context *c, size_t len)
{
    const struct fl_seat *s = c->turn.next;

    if (c->layout == NULL || s == c->end) {
        return;
    }
    if (s == c->layout->seat && !fits(s, len)) { /* the step's first, and larger than ever */
        wish(c, s, len);
        go_on_at(c, s + 1);
    } else if (fits(s, len)) {
        go_on_at(c, s + 1);
    }
}

void fl_replay_resume(struct fl_step_context *c)
{
    go_on_at(c, c->layout->seat + FL_SIGNATURE);
    c->end = c->layout->seat + c->layout->n;
}

/* Sizes that have not grown for long need less headroom, or another one: the layout is made anew. */
static void note_step(struct fl_step_context *c)
{
    enum { LONG = 4 }; /* times the steps that it was made of */
    struct fl_layout *l = c->layout;
    struct fl_past *p = &l->past;

    p->asked_then = p->asked_then != 0 ? p->asked_then : c->asked;
    p->asked_most = fl_max(p->asked_most, c->asked);
    p->asked_least = fl_min(p->asked_least, c->asked);
    p->steps++;
    l->wish = l->wish || (p->headroom && p->seen != 0 && p->steps == LONG * p->seen);
}

bool fl_replay_end(struct fl_step_context *c)
{
    fl_replay_count(c);
    bool strange = c->diverged - c->crowded > c->requests_here / 2;
    bool grows = c->grown != NULL || (c->layout != NULL && c->layout->wish);
    bool bad = !strange && !grows && c->missed > c->forgiven + c->asked / 20;

    if (c->layout != NULL) {
        note_step(c);
        fl_keep_use(c->layout);
    }
    c->relearn = c->diverged > c->requests_here / 100;
    c->strange = strange ? c->strange + 1 : 0;
    c->bad = (uint8_t)(c->bad << 1 | bad);
    c->served++;
    fl_stats_bump(&c->stats.steps);
    return __builtin_popcount(c->bad) < BAD_OF_EIGHT && c->strange < STRANGE_MOST;
}

bool fl_replay_is_crowded(struct fl_step_context *c)
{
    bool crowded = c->crowded > c->requests_here / 50;

    c->in_arena++;
    c->crowded_steps = crowded ? c->crowded_steps + 1 : 0;
    if (c->crowded_steps < CROWDED_STEPS || c->in_arena < CROWDED_STEPS ||
        (c->moved && c->in_arena < MOVE_AFTER)) {
        return false;
    }
    c->moved = true;
    c->crowded_steps = c->in_arena = 0;
    c->bad = 0;
    return true;
}

void fl_replay_off(struct fl_step_context *c)
{
    fl_replay_count(c);
    if (c->arena != NULL) {
        (void)fl_arena_trim(c->arena);
    }
    c->layout = NULL;
    go_nowhere(c);
    c->bad = 0;
    c->served = 0;
    c->strange = c->misses_in_a_row = 0;
}
