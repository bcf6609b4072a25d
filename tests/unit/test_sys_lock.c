/* The futex lock, its ranks, page sizes, and what fl_say writes. */
#include "await.h"
#include "sys/sys.h"
#include "cases.h"
#include "unit/fake_sys.h"

#include <limits.h>
#include <pthread.h>

#define THP "/sys/kernel/mm/transparent_hugepage/"

static struct fl_lock a, b;
static unsigned long shared; /* guarded by a */

static void each(void)
{
    fake_install();
    fl_lock_init(&a, FL_RANK_REGION);
    fl_lock_init(&b, FL_RANK_LEAF);
}

static void *add_many(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        fl_lock_acquire(&a);
        shared++;
        fl_lock_release(&a);
    }
    return arg;
}

static int woken;

static int note_woken(_Atomic uint32_t *word, int n)
{
    (void)word;
    woken = n;
    return 0;
}

/* A release wakes one of those that sleep, and a fork may have the lock before that one comes to
 * it: the others sleep on, and the word does not tell of them. Under a stream's lock that would be
 * for ever, since fork waits for that. */
CASE(a_fork_wakes_all_that_wait)
{
    fl_sys.wake = note_woken;
    fl_lock_acquire(&a);
    woken = 0;
    fl_lock_hold_for_fork(&a);
    assert_int_equal(woken, INT_MAX);
    fl_lock_release_in_parent(&a);
}

CASE(lock_excludes_four_threads)
{
    pthread_t t[4];
    shared = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, add_many, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    assert_int_equal(shared, 4 * 20000);
    assert_int_equal(a.word, 0);
}

static _Atomic int stage;

/* Holds `a` from stage 1 until stage 2. */
static void *hold_a(void *arg)
{
    fl_lock_acquire(&a);
    stage = 1;
    FL_AWAIT(stage == 2);
    fl_lock_release(&a);
    return arg;
}

static void begin_holding(pthread_t *t)
{
    stage = 0;
    assert_int_equal(pthread_create(t, NULL, hold_a, NULL), 0);
    FL_AWAIT(stage == 1);
}

/* The time passes, and the lock is held still. */
static int wait_in_vain(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    assert_int_equal(*word, expected);
    fake.now_ns += timeout_ns;
    return -ETIMEDOUT;
}

/* The thread that has the lock lets it go meanwhile. */
static int wait_for_its_end(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    assert_int_not_equal(timeout_ns, 0);
    stage = 2;
    FL_AWAIT(*word != expected);
    return 0;
}

/* What a handler's fork may have of the thread that it interrupted. */
CASE(amid_a_call_what_is_held_is_left)
{
    fl_lock_acquire(&a);
    assert_false(fl_lock_acquire_amid(&a, fl_lock_amid_until()));
    assert_true(fl_lock_acquire_amid(&b, fl_lock_amid_until()));
    fl_lock_hold_for_fork(&b);
    assert_false(
        fl_lock_acquire_amid(&b, fl_lock_amid_until())); /* a handler that forks amid that fork */
    uint32_t forking = b.word;
    fl_lock_free_in_child(&b);
    assert_int_equal(b.word, forking); /* the first fork goes on in the child of the second */
    fl_lock_release_in_parent(&b);
    fl_lock_release(&a);
    assert_int_equal(a.word, 0);
    assert_int_equal(b.word, 0);
}

CASE(amid_a_call_another_thread_s_is_waited_for_a_while)
{
    pthread_t t;
    begin_holding(&t);
    fl_sys.wait = wait_in_vain;
    uint64_t until = fl_lock_amid_until();
    assert_false(fl_lock_acquire_amid(&a, until));
    assert_true(until != 0 && fake.now_ns == until);
    fl_sys.wait = wait_for_its_end;
    assert_true(fl_lock_acquire_amid(&a, fl_lock_amid_until()));
    fl_lock_release(&a);
    pthread_join(t, NULL);
    assert_int_equal(a.word, 0);
    begin_holding(&t);
    uint32_t held = a.word;
    fl_lock_free_in_child(&a);
    assert_int_equal(a.word, 0);
    a.word = held; /* this is no child */
    stage = 2;
    pthread_join(t, NULL);
}

static void *take_a_over(void *arg)
{
    fl_lock_acquire(&a); /* after a tenth of a second */
    stage = 1;
    FL_AWAIT(stage == 2);
    return arg;
}

/* The thread that took it over is not in the child. */
CASE(what_was_taken_over_is_free_in_the_child)
{
    pthread_t t;
    fl_sys.now_ns = fl_sys_linux.now_ns;
    for (int nested = 0; nested < 2; nested++) {
        stage = 0;
        assert_true(fl_lock_acquire_amid(&a, fl_lock_amid_until()));
        fl_lock_hold_for_fork(&a);
        assert_int_equal(pthread_create(&t, NULL, take_a_over, NULL), 0);
        FL_AWAIT(stage == 1);
        if (nested != 0) { /* a handler forks amid that fork: its child goes on with it */
            fl_lock_free_in_child(&a);
            assert_int_equal(a.word, 0);
            fl_lock_release_in_parent(&a);
        } else {
            assert_false(fl_lock_release_in_child(&a));
        }
        assert_int_equal(a.word, 0);
        stage = 2;
        pthread_join(t, NULL);
    }
}

#if FL_CHECK_LEVEL >= 2
static void take_in_rank_order(void)
{
    fl_lock_acquire(&a);
    fl_lock_acquire(&b);
    fl_lock_release(&b);
    fl_lock_release(&a);
}

static void take_against_rank_order(void)
{
    fl_lock_acquire(&b);
    fl_lock_acquire(&a);
}

static void take_twice(void)
{
    fl_lock_acquire(&a);
    fl_lock_acquire(&a);
}

CASE(ranks_are_kept)
{
    char said[256];
    assert_false(fake_dies(take_in_rank_order, said, sizeof said));
    assert_true(fake_dies(take_against_rank_order, said, sizeof said));
    assert_string_equal(said, "faultless: lock rank inversion\n");
    assert_true(fake_dies(take_twice, said, sizeof said));
    assert_string_equal(said, "faultless: lock rank inversion\n");
}
#endif

static void say_something_wrong(void)
{
    fl_fatal("something is wrong");
}

CASE(fatal_says_its_line_and_aborts)
{
    char said[256];
    assert_true(fake_dies(say_something_wrong, said, sizeof said));
    assert_string_equal(said, "faultless: something is wrong\n");
}

CASE(a_long_line_is_cut_and_still_ends)
{
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    fl_say(text);
    assert_int_equal(fake.nsaid, 511);
    assert_int_equal(fake.said[510], '\n');
}

CASE(what_is_said_is_one_line)
{
    fl_say("FAULTLESS_LIMIT=1\nfaultless: all is well\r\n");
    assert_string_equal(fake.said, "faultless: FAULTLESS_LIMIT=1?faultless: all is well??\n");
}

#define NEVER "always madvise [never]\n"
#define MADVISE "always inherit [madvise] never\n"
#define INHERIT "always [inherit] madvise never\n"
#define ALWAYS "[always] inherit madvise never\n"

CASE(page_sizes_come_from_the_kernel)
{
    enum { NONE, ADVISED, EVERYWHERE };
    static const struct {
        const char *huge;                              /* hpage_pmd_size */
        const char *all, *ours, *of_8_mib, *of_32_mib; /* modes; NULL: there is no such file */
        size_t mib;
        int use;
    } table[] = {
        {"1048576\n", MADVISE, NULL, NULL, NULL, 1, ADVISED},
        {"2097152\n", ALWAYS, NULL, NULL, NULL, 2, EVERYWHERE},
        {"2097152\n", NEVER, NULL, NULL, NULL, 2, NONE},
        {"2097152\n", NULL, NULL, NULL, NULL, 2, NONE},
        /* nonsense is ignored */
        {"0\n", MADVISE, NULL, NULL, NULL, 2, ADVISED},
        {"3000000\n", MADVISE, NULL, NULL, NULL, 2, ADVISED},
        /* too large, as with base pages of 64 KiB */
        {"536870912\n", MADVISE, NULL, NULL, NULL, 2, NONE},
        {"536870912\n", ALWAYS, NULL, NULL, NULL, 2, NONE},
        /* Linux 6.8 and later: the mode for our size goes before that for all */
        {"2097152\n", NEVER, MADVISE, NULL, NULL, 2, ADVISED},
        {"2097152\n", NEVER, ALWAYS, NULL, NULL, 2, EVERYWHERE},
        {"2097152\n", ALWAYS, NEVER, NULL, NULL, 2, NONE},
        {"2097152\n", ALWAYS, INHERIT, NULL, NULL, 2, EVERYWHERE},
        /* folios of 2 MiB are used where no larger ones come */
        {"33554432\n", MADVISE, MADVISE, NULL, INHERIT, 2, NONE},
        {"33554432\n", MADVISE, MADVISE, NULL, NEVER, 2, ADVISED},
        {"33554432\n", MADVISE, MADVISE, MADVISE, NEVER, 2, NONE},
        {"33554432\n", ALWAYS, INHERIT, NULL, NEVER, 2, EVERYWHERE},
        {"33554432\n", NEVER, INHERIT, NULL, NEVER, 2, NONE},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        fake_file(THP "hpage_pmd_size", table[i].huge);
        fake_file(THP "enabled", table[i].all);
        fake_file(THP "hugepages-2048kB/enabled", table[i].ours);
        fake_file(THP "hugepages-8192kB/enabled", table[i].of_8_mib);
        fake_file(THP "hugepages-32768kB/enabled", table[i].of_32_mib);
        fl_sys_boot();
        if (fl_page.huge != table[i].mib << 20 || fl_page.thp != (table[i].use != NONE) ||
            fl_page.always != (table[i].use == EVERYWHERE)) {
            fail_msg("row %zu: %zu, %d, %d", i, fl_page.huge, fl_page.thp, fl_page.always);
        }
        assert_int_equal((size_t)1 << fl_page.shift, fl_page.base);
    }
}

CASES_MAIN(.setup = each)
