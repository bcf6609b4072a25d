#include "unit/region_fixture.h"

#include "unit/cmocka_all.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct fl_region region;

enum { GUARDS = 4 };
static struct fl_extent *guards[GUARDS];
void (*guards_also)(const char *file, int line);

void region_clear(void)
{
    fake_install();
    memset(guards, 0, sizeof guards);
    guards_also = NULL;
    memset(&region, 0, sizeof region);
}

void region_begin(const struct fl_region_config *config)
{
    struct fl_region_config plain = {.huge = true};

    region_clear();
    assert_int_equal(fl_region_start(&region, config != NULL ? config : &plain), 0);
    fake_forget();
}

/* As a plan would watch it: those fields are the owner's. */
static struct fl_extent *watched(struct fl_extent *e)
{
    if (e != NULL) {
        e->life = 0xdeadbeef;
        e->watcher = 0xbeef;
    }
    return e;
}

struct fl_extent *take(size_t len)
{
    return watched(fl_region_take(&region, NULL, len, fl_page.base, false));
}

struct fl_extent *take_aligned(size_t len, size_t align)
{
    return watched(fl_region_take(&region, NULL, len, align, false));
}

struct fl_extent *take_zeroed(size_t len)
{
    return watched(fl_region_take(&region, NULL, len, fl_page.base, true));
}

void give(struct fl_extent *e)
{
    assert_non_null(e);
    for (size_t i = 0; i < GUARDS; i++) {
        guards[i] = guards[i] != e ? guards[i] : NULL;
    }
    assert_true(fl_extent_claim(e, region.epoch));
    fl_region_give(&region, e);
}

unsigned char *bytes(const struct fl_extent *e)
{
    return (unsigned char *)e->base;
}

bool is_filled(const struct fl_extent *e, unsigned char with)
{
    const unsigned char *p = e != NULL ? bytes(e) : NULL;

    return p != NULL && p[0] == with && memcmp(p, p + 1, e->len - 1) == 0;
}

void fill(struct fl_extent *e, unsigned char with)
{
    assert_non_null(e);
    memset(bytes(e), with, e->len);
}

void assert_sound_at(const char *file, int line)
{
    const char *broken = fl_region_check(&region);

    if (broken != NULL) {
        print_error("invariant %s of region.h does not hold\n", broken);
        _fail(file, line);
    }
}

void assert_settled_at(const char *file, int line)
{
    assert_sound_at(file, line);
    if (region.held.moving != 0 || region.held.exempt != 0 || region.held.filling != 0 ||
        !TAILQ_EMPTY(&region.isolated) || fake.moves_open != 0 || fl_region_busy()) {
        print_error("leaving %zu, exempt %zu, filling %zu, apart %d, open %u, busy %d\n",
                    region.held.moving, region.held.exempt, region.held.filling,
                    !TAILQ_EMPTY(&region.isolated), fake.moves_open, fl_region_busy());
        _fail(file, line);
    }
}

bool is_reserved(void)
{
    return region.space.window.reserved;
}

struct fl_stats_values stats(void)
{
    struct fl_stats_values v = {.active = 1};

    fl_region_stats_read(&region, &v);
    return v;
}

const struct fake_call *in_window(enum fake_slot slot, size_t i)
{
    for (size_t k = 0; k < fl_min(fake.nlog, FAKE_LOG); k++) {
        const struct fake_call *c = &fake.log[k];
        if (c->slot == slot &&
            c->range.base - region.space.first <
                fl_range_end(region.space.window.all) - region.space.first &&
            i-- == 0) {
            return c;
        }
    }
    return NULL;
}

bool stock_begin(const struct fl_region_config *c)
{
    region_begin(c);
    fake.pretend_populate = true;
    return !is_reserved();
}

bool stock_filled(const struct fl_region_config *c)
{
    if (!stock_begin(c)) {
        return false;
    }
    assert_non_null(take(c->stock)); /* so much is wanted */
    (void)fl_region_refill(&region);
    assert_stock(c->stock);
    fake_forget();
    return true;
}

void assert_stock_at(size_t ready, const char *file, int line)
{
    if (region.pages.reserve.ready != ready || region.pages.reserve.held != ready ||
        stats().stock_bytes != ready) {
        print_error("%zu ready, %zu held, %zu expected\n", region.pages.reserve.ready,
                    region.pages.reserve.held, ready);
        _fail(file, line);
    }
    assert_settled_at(file, line);
}

unsigned char *stock_chunk(unsigned i)
{
    return (unsigned char *)region.pages.reserve.span.all.base + i * region.pages.reserve.chunk_len;
}

const struct fl_region_config stock_wanted = {.huge = true, .stock = MIB(64)};

int stock_none(void **state)
{
    assert_true(stock_begin(&stock_wanted));
    return 0;
}

int stock_ready(void **state)
{
    assert_true(stock_filled(&stock_wanted));
    return 0;
}

void stock_refill(size_t demand)
{
    region.refill.demand = demand;
    (void)fl_region_refill(&region);
}

bool has_stock(void)
{
    region_begin(NULL);
    return !is_reserved();
}

void run_beside(void *(*f)(void *), void *arg)
{
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, f, arg), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
}

int fork_with(int (*child)(void))
{
    fl_region_fork_lock(&region);
    int status = fake_child(child);
    fl_region_fork_parent(&region);
    return status;
}

struct beside {
    int (*child)(void);
    int status;
};

static void *fork_there(void *arg)
{
    struct beside *b = arg;

    b->status = fork_with(b->child);
    return NULL;
}

int fork_beside(int (*child)(void))
{
    struct beside b = {child, -1};
    run_beside(fork_there, &b);
    return b.status;
}

int waiting_begin(void **state)
{
    static const struct fl_region_config waiting = {.huge = true, .wait_for_touch = true};

    region_begin(&waiting);
    return 0;
}

void free_looked_at(struct fl_extent *e)
{
    if ((e->left & FL_LEFT_UNSEEN) != 0) {
        fl_region_note_touched(&region, e);
    }
    give(e);
}

void touch_at(struct fl_extent *e, size_t at)
{
    bytes(e)[at] = 0xee;
}

size_t bytes_there(const struct fl_extent *e)
{
    size_t n = 0;

    assert_int_equal(fl_sys_linux.resident((struct fl_range){e->base, e->len}, &n), 0);
    return n;
}

int plain_begin(void **state)
{
    region_begin(NULL);
    return 0;
}

struct fl_extent *cache_put(struct fl_cache *c, struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    assert_null(fl_cache_put(&region, c, e));
    return e;
}

void free_to(struct fl_cache *c, struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    struct fl_extent *old = fl_cache_put(&region, c, e);
    if (old != NULL && !fl_region_keep(&region, c, old)) {
        fl_region_give(&region, old);
    }
}

void drain_caches(void)
{
    fl_region_lock(&region);
    (void)fl_cache_drain_all(&region, 0);
    fl_region_unlock(&region);
}

void resize_depots(void)
{
    fl_region_lock(&region);
    fl_depot_resize(&region);
    fl_region_unlock(&region);
}

void fork_in_vain(void)
{
    fl_region_fork_lock(&region);
    fl_region_fork_parent(&region);
}

void note_remapped(uintptr_t base, size_t len)
{
    fl_region_note_remapped(&region, (struct fl_range){base, len});
}

struct fl_extent *take_walled(size_t len)
{
    struct fl_extent *e = take(len);

    assert_non_null(take(fl_page.huge));
    return e;
}

struct fl_extent *take_guard(size_t len)
{
    size_t i = 0;

    while (guards[i] != NULL) {
        assert_true(++i < GUARDS);
    }
    guards[i] = take(len);
    fill(guards[i], 0x11);
    return guards[i];
}

void assert_guarded_at(const char *file, int line)
{
    for (size_t i = 0; i < GUARDS; i++) {
        if (guards[i] != NULL && !is_filled(guards[i], 0x11)) {
            print_error("guard %zu was written to\n", i);
            _fail(file, line);
        }
    }
    (guards_also != NULL ? guards_also : assert_settled_at)(file, line);
}

static size_t move_before_refusal;
static int refusal_of_moves;

static int refuse_a_move(struct fl_range from, uintptr_t to, size_t *most)
{
    if (move_before_refusal != 0) {
        *most = fl_min(move_before_refusal, from.len);
        move_before_refusal = 0;
    }
    return refusal_of_moves;
}

void refuse_moves(size_t after, int with)
{
    move_before_refusal = after;
    refusal_of_moves = with;
    fake.on_move = refuse_a_move;
}

void withhold_descriptors(bool withheld)
{
    static size_t used;

    if (withheld) {
        used = region.space.descriptors.used;
        SLIST_INIT(&region.space.descriptors.stash.spare);
        region.space.descriptors.stash.n = 0;
        region.space.descriptors.used = UINT32_MAX;
    } else {
        region.space.descriptors.used = used;
    }
}
