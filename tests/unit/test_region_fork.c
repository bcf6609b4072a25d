/* What children of fork get: all that is live, nothing that is free; and what it leaves the parent.
 * The children are real. */
#include "region/back/purge.h"
#include "cases.h"
#include "unit/fake_map.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fl_extent *live[3], *freed[3];
static struct fl_range kept[3]; /* whole huge pages of what is free */

/* Live and free extents in turn, all of them with edges of half a huge page; the free ones full of
 * 0xee. */
static void in_turn_by(const struct fl_region_config *c)
{
    region_begin(c);
    assert_non_null(take(MIB(1)));
    for (size_t i = 0; i < 3; i++) {
        freed[i] = take(MIB(6));
        live[i] = take(MIB(4));
        fill(freed[i], 0xee);
        fill(live[i], (unsigned char)(1 + i));
        kept[i] = fl_range_inner(fl_extent_range(freed[i]), MIB(2));
    }
    for (size_t i = 0; i < 3; i++) {
        give(freed[i]);
    }
    fake_forget();
}

static void in_turn(void)
{
    in_turn_by(NULL);
}

/* Bytes of the window that children would not get. */
static size_t withheld(void)
{
    return fake_kept_from_child(region.space.window.all);
}

static bool live_is_as_it_was(void)
{
    return is_filled(live[0], 1) && is_filled(live[1], 2) && is_filled(live[2], 3);
}

/* Takes all that is free and writes to it: where nothing is mapped the child dies of it. */
static bool all_of_it_is_memory(void)
{
    size_t in_use = region.held.in_use;

    for (size_t len = MIB(64); len >= KIB(4); len = len / 2) {
        struct fl_extent *e;
        while (fl_region_free(&region).bytes >= len &&
               (e = fl_fit_first(&region.zones.of[0].populated, len, KIB(4))) != NULL) {
            e = take_zeroed(len);
            if (e == NULL || !is_filled(e, 0)) {
                return false;
            }
            fill(e, 0x5c);
        }
    }
    return fl_region_free(&region).bytes == 0 && region.held.in_use > in_use &&
           fl_region_check(&region) == NULL && live_is_as_it_was();
}

/* Of a child: its region is sound, and what is live is there. */
static bool is_whole_here(void)
{
    fl_region_fork_child(&region, NULL);
    return fl_region_check(&region) == NULL && live_is_as_it_was();
}

static int child_without(void)
{
    if (!is_whole_here()) {
        return 1;
    }
    for (size_t i = 0; i < 3; i++) {
        struct fl_extent *e = fl_extent_free_at(&region.space, kept[i].base, 0);
        if (e == NULL || e->content != FL_CONTENT_EMPTY || e->len != kept[i].len) {
            return 2;
        }
    }
    if (region.held.populated != MIB(32) - 3 * MIB(4) || fl_region_free(&region).huge != 0) {
        return 3;
    }
    struct fl_extent *z = take_zeroed(MIB(6)); /* over such a hole */
    return z != NULL && is_filled(z, 0) && all_of_it_is_memory() ? 0 : 4;
}

static int child_with_all(void)
{
    return is_whole_here() && region.held.populated == MIB(32) && all_of_it_is_memory() ? 0 : 1;
}

CASE(children_do_not_get_free_huge_pages)
{
    in_turn();
    size_t populated = region.held.populated;
    assert_int_equal(fork_with(is_reserved() ? child_with_all : child_without), 0);
    assert_int_equal(region.held.populated, populated);
    assert_settled();
    assert_true(all_of_it_is_memory());
    assert_settled();
}

CASE(exactly_those_are_kept)
{
    in_turn();
    fl_region_fork_lock(&region);
    assert_int_equal(withheld(), is_reserved() ? 0 : 3 * MIB(4));
    assert_int_equal(fake.count[FAKE_ADVISE], is_reserved() ? 0 : 3);
    for (size_t i = 0; i < 3 && !is_reserved(); i++) {
        assert_int_equal(fake_kept_from_child(kept[i]), MIB(4));
    }
    fl_region_fork_parent(&region);
    give(live[1]); /* merges with two of them */
    assert_int_equal(withheld(), is_reserved() ? 0 : 3 * MIB(4));
    fl_region_fork_lock(&region);
    assert_int_equal(withheld(), is_reserved() ? 0 : fl_region_free(&region).huge);
    fl_region_fork_parent(&region);
    assert_settled();
}

static unsigned said_of_fork(void)
{
    unsigned n = 0;

    for (size_t i = 0; i < fake.nlog; i++) {
        enum fl_sys_advice advice = fake.log[i].advice;
        n += fake.log[i].slot == FAKE_ADVISE &&
             (advice == FL_ADVICE_FORK || advice == FL_ADVICE_NO_FORK);
    }
    return n;
}

/* The worker never says under the lock what is inherited: a delay there would delay each thread. */
CASE(only_use_makes_it_inherited_again)
{
    in_turn();
    fork_in_vain();
    fake_forget();
    give(live[0]);
    fl_region_soften(&region);
    (void)fl_region_purge_some(&region, 0, MIB(3));
    assert_int_equal(said_of_fork(), 0);
    (void)fl_region_purge(&region, 0);
    assert_int_equal(said_of_fork(), 0);
    assert_int_equal(withheld(), 0);
    assert_settled();
}

CASE(cached_extents_are_free_ones_too)
{
    (void)plain_begin(state);
    struct fl_cache *c = fl_cache_acquire(&region);
    struct fl_extent *e = take(MIB(8));
    assert_non_null(take(MIB(2)));
    (void)cache_put(c, e);
    fl_region_fork_lock(&region);
    assert_int_equal(withheld(), is_reserved() ? 0 : MIB(8));
    fl_region_fork_parent(&region);
    assert_true((fl_cache_take(&region, c, MIB(8)) != NULL) == is_reserved());
    assert_settled();
}

static unsigned refused_at;

static int child_after_a_refusal(void)
{
    return is_whole_here() && region.held.populated == MIB(32) - (refused_at - 1) * MIB(4) &&
                   all_of_it_is_memory()
               ? 0
               : 1;
}

/* The kernel has no room for more maps: it may have done a part of it by then. */
CASE(what_cannot_be_kept_is_inherited_whole)
{
    for (refused_at = 1; refused_at <= 3; refused_at++) {
        in_turn();
        if (is_reserved()) {
            return;
        }
        fake_fail_at(refused_at, 1u << FAKE_ADVISE);
        fl_region_fork_lock(&region);
        assert_true(fake_fired());
        fake_fail_at(0, 1);
        int status = fake_child(child_after_a_refusal);
        fl_region_fork_parent(&region);
        assert_int_equal(status, 0);
        assert_int_equal(withheld(), (refused_at - 1) * MIB(4));
        assert_true(all_of_it_is_memory());
        assert_int_equal(withheld(), 0);
    }
}

static int grandchild(void)
{
    return is_whole_here() && all_of_it_is_memory() ? 0 : 1;
}

static int child_that_forks(void)
{
    fl_region_fork_child(&region, NULL);
    struct fl_extent *a = take(MIB(6)), *b = take(MIB(6));
    if (a == NULL || b == NULL) {
        return 2;
    }
    fill(a, 0x31);
    give(b);
    return fork_with(grandchild) == 0 && is_filled(a, 0x31) && all_of_it_is_memory() ? 0 : 3;
}

CASE(children_have_children)
{
    in_turn();
    assert_int_equal(fork_with(child_that_forks), 0);
    assert_int_equal(fork_with(child_that_forks), 0);
    assert_true(all_of_it_is_memory());
    assert_settled();
}

static int child_without_descriptors(void)
{
    SLIST_INIT(&region.space.descriptors.stash.spare);
    region.space.descriptors.stash.n = 0;
    region.space.descriptors.used = UINT32_MAX; /* no more are to be had */
    if (!is_whole_here()) {
        return 1;
    }
    for (size_t i = 0; i < 3; i++) {
        if (fl_extent_free_at(&region.space, freed[i]->base, 0) != NULL) {
            return 2; /* these addresses may not be handed out */
        }
    }
    return take(MIB(4)) == NULL ? 0 : 3;
}

CASE(a_child_without_descriptors_gives_such_addresses_up)
{
    in_turn();
    if (!is_reserved()) {
        assert_int_equal(fork_with(child_without_descriptors), 0);
        assert_true(all_of_it_is_memory());
    }
}

static int child_status;

static int child_amid_a_move(void)
{
    return is_whole_here() && region.held.moving == 0 && TAILQ_EMPTY(&region.isolated) &&
                   all_of_it_is_memory()
               ? 0
               : 1;
}

/* The donors' pages have moved, their maps are being given back: on another thread, which the child
 * has not. */
static void fork_now(void)
{
    fake.on_purge = NULL;
    child_status = fork_beside(child_amid_a_move);
}

CASE(a_child_forked_amid_a_move_finds_donors_gone)
{
    in_turn();
    region.held.in_use_peak = 0;
    child_status = -1;
    fake.on_purge = fork_now;
    assert_non_null(take(MIB(10)));
    assert_int_equal(child_status, 0);
    assert_true(live_is_as_it_was());
    assert_settled();
}

static pid_t forked;
static bool child_has_it;

static void assert_child_was_right(void)
{
    int status = -1;

    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
}

/* As a signal handler does that interrupts the call. */
static void fork_here(void)
{
    fake.on_purge = NULL;
    fl_region_fork_lock(&region);
    forked = fork();
    if (forked == 0) {
        fl_sys.write = fl_sys_linux.write; /* what it says is to be seen */
        fake_map_forked();
        child_has_it = fl_region_fork_child(&region, NULL);
    } else {
        fl_region_fork_parent(&region);
    }
}

CASE(a_handler_forks_amid_a_purge_that_goes_on_in_the_child)
{
    in_turn();
    fake.on_purge = fork_here;
    size_t given = fl_region_purge(&region, 0);
    if (forked == 0) { /* it gives the region up, which is sound all the same */
        _exit(!child_has_it && fl_region_check(&region) == NULL && live_is_as_it_was() ? 0 : 1);
    }
    assert_child_was_right();
    assert_true(given >= 3 * MIB(4)); /* and pieces */
    assert_settled();
}

/* A handler forked amid a call that holds the region, so that the child was told of nothing. The
 * call goes on in it, and uses what has merged since the last fork: in part it is not there. */
CASE(a_child_that_was_not_told_uses_what_has_merged)
{
    in_turn();
    fork_in_vain();
    give(live[0]);
    forked = fork();
    if (forked == 0) {
        fake_map_forked();
        struct fl_extent *e = take(MIB(12));
        fill(e, 0x5c);
        _exit(e->base <= kept[0].base && is_filled(e, 0x5c) && is_filled(live[1], 2) ? 0 : 1);
    }
    assert_child_was_right();
}

static int (*remap_before)(struct fl_range, uintptr_t);

/* The map has moved, and is not for children still. */
static int remap_and_fork(struct fl_range from, uintptr_t to)
{
    int rc = remap_before(from, to);

    fl_sys.remap = remap_before;
    forked = fork();
    if (forked == 0) {
        fake_map_forked();
    }
    return rc;
}

CASE(a_handler_forks_before_a_map_that_moved_is_shown)
{
    static const struct fl_region_config by_remap = {.huge = true, .method = FL_METHOD_REMAP};
    in_turn_by(&by_remap);
    if (is_reserved()) { /* no map moves there */
        return;
    }
    region.held.in_use_peak = 0;
    fork_in_vain();
    remap_before = fl_sys.remap;
    fl_sys.remap = remap_and_fork;
    struct fl_extent *e = take(MIB(10));
    fill(e, 0x5c);
    if (forked == 0) {
        _exit(is_filled(e, 0x5c) && live_is_as_it_was() ? 0 : 1);
    }
    assert_child_was_right();
}

static bool signals_wait;

static int look_at_signals(struct fl_range from, uintptr_t to, size_t *most)
{
    uint64_t blocked = 0;
    (void)from;
    (void)to;
    (void)most;
    assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof blocked), 0);
    signals_wait = (blocked | 1u << (SIGKILL - 1) | 1u << (SIGSTOP - 1)) == UINT64_MAX;
    return 0;
}

CASE(no_handler_forks_while_a_descriptor_is_open)
{
    uint64_t blocked = UINT64_MAX;
    in_turn();
    region.held.in_use_peak = 0;
    signals_wait = false;
    fake.on_move = look_at_signals;
    assert_non_null(take(MIB(10)));
    assert_true(signals_wait);
    assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof blocked), 0);
    assert_int_equal(blocked, 0);
}

CASES_MAIN()
