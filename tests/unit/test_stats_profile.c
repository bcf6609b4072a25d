/* The profile: which blocks are sampled and what they stand for, the peak, a full table, threads,
 * and what a file holds of stacks. */
#include "stats/stats.h"
#include "cases.h"

#include <pthread.h>

enum { MIB = 1 << 20, THREADS = 4, ROUNDS = 20000 };

static char path[] = "/tmp/fl-profile-XXXXXX";

static void begin(void)
{
    int fd = mkstemp(path);
    fl_sys_boot();
    assert_true(fd >= 0 && close(fd) == 0);
}

static void end(void)
{
    assert_int_equal(unlink(path), 0);
}

/* The sample of that number: behind the head, as readers find it. */
static const struct fl_profile_sample *sample(uint32_t number)
{
    const char *first = (const char *)(fl_profile + 1);

    return (const void *)(first + (size_t)(number - 1) * FL_PROFILE_STRIDE);
}

CASE(each_block_of_the_distance_is_sampled_for_itself)
{
    assert_int_equal(fl_profile_begin(MIB), 0);
    uint32_t a = fl_profile_saw(MIB), b = fl_profile_saw(3 * MIB);
    assert_true(a != 0 && b != 0 && a != b);
    assert_int_equal(sample(a)->state, FL_PROFILE_LIVE);
    assert_int_equal(sample(b)->weight, 3 * MIB);
    assert_true(sample(b)->stack_len > 256);
    assert_int_equal(fl_profile->live, 4 * MIB);
    fl_profile_freed(b);
    assert_int_equal(fl_profile->live, MIB);
    fl_profile_freed(a);
    assert_int_equal(fl_profile->live, 0);
}

CASE(the_peak_outlives_its_blocks)
{
    assert_int_equal(fl_profile_begin(1), 0);
    uint32_t a = fl_profile_saw(5 * MIB), b = fl_profile_saw(5 * MIB);
    fl_profile_freed(a);
    uint32_t c = fl_profile_saw(MIB); /* after the peak: its place may be another's at once */
    assert_true(c != a && c != b);
    fl_profile_freed(c);
    assert_int_equal(sample(c)->state, FL_PROFILE_NONE);
    assert_int_equal(sample(a)->state, FL_PROFILE_FREED);
    assert_int_equal(fl_profile->peak, 10 * MIB);
    assert_true(sample(a)->number <= fl_profile->peak_at);
    uint32_t d = fl_profile_saw(6 * MIB); /* a new one, of which `a` is no part */
    assert_int_equal(fl_profile->peak, 11 * MIB);
    assert_int_equal(sample(a)->state, FL_PROFILE_NONE);
    assert_int_equal(sample(b)->state, FL_PROFILE_LIVE);
    assert_int_equal(sample(d)->number, fl_profile->peak_at);
}

/* The generator begins alike for the first thread that comes, so this is the same at each run. */
CASE(what_samples_stand_for_is_right_on_average)
{
    static const size_t len[] = {64 << 10, 1 * MIB, 2 * MIB + 4096};
    double stands[3] = {0}, is[3] = {0};

    assert_int_equal(fl_profile_begin(8 * MIB), 0);
    for (unsigned i = 0; i < 100000; i++) {
        unsigned k = i % 16 == 0 ? 1 + i / 16 % 2 : 0;
        uint32_t number = fl_profile_saw(len[k]);
        is[k] += (double)len[k];
        stands[k] += number != 0 ? (double)sample(number)->weight : 0;
        if (number != 0 && i % 8 != 0) { /* others stay, and the distances grow */
            fl_profile_freed(number);
        }
    }
    assert_true(fl_profile->samples > 1000 && fl_profile->lost == 0);
    for (unsigned k = 0; k < 3; k++) {
        print_message("           %zu KiB: %.0f MiB for %.0f\n", len[k] >> 10, stands[k] / MIB,
                      is[k] / MIB);
        assert_true(stands[k] > 0.9 * is[k] && stands[k] < 1.1 * is[k]);
    }
}

CASE(a_full_table_leaves_blocks_out_and_counts_them)
{
    enum { MORE = 10 };
    uint32_t last = 0;

    assert_int_equal(fl_profile_begin(1), 0);
    for (unsigned i = 0; i < FL_PROFILE_SLOTS; i++) {
        last = fl_profile_saw(MIB);
        assert_int_not_equal(last, 0);
    }
    for (unsigned i = 0; i < MORE; i++) {
        assert_int_equal(fl_profile_saw(MIB), 0);
    }
    assert_int_equal(fl_profile->lost, MORE);
    assert_int_equal(fl_profile->slots, FL_PROFILE_SLOTS);
    fl_profile_freed(last);
    fl_profile_freed(1);
    assert_int_equal(fl_profile_saw(MIB), 0); /* they are the peak's */
    assert_true(fl_profile_saw(3 * MIB) == 0);
}

static void *churn(void *unused)
{
    uint32_t held[16] = {0};

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t *at = &held[i * 7 % 16];
        if (*at != 0) {
            fl_profile_freed(*at);
        }
        *at = fl_profile_saw((size_t)(1 + i % 5) << 16);
    }
    for (unsigned i = 0; i < 16; i++) {
        if (held[i] != 0) {
            fl_profile_freed(held[i]);
        }
    }
    return unused;
}

CASE(threads_leave_nothing_behind)
{
    pthread_t thread[THREADS];

    assert_int_equal(fl_profile_begin(1 << 17), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, churn, NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    assert_int_equal(fl_profile->live, 0);
    assert_int_equal(fl_profile->lost, 0);
    for (uint32_t number = 1; number <= fl_profile->slots; number++) {
        assert_int_not_equal(sample(number)->state, FL_PROFILE_LIVE);
    }
}

CASE(a_confined_process_is_left_alone)
{
    assert_int_equal(fl_profile_begin(1), 0);
    fl_sys_confine(true);
    assert_int_equal(fl_profile_saw(MIB), 0);
    fl_sys_confine(false);
    assert_int_not_equal(fl_profile_saw(MIB), 0);
}

static char text[1 << 20];

static size_t find(const void *what, size_t len, size_t all)
{
    size_t n = 0;

    for (const char *at = text; (at = memmem(at, all - (size_t)(at - text), what, len)) != NULL;
         at++) {
        n++;
    }
    return n;
}

/* A secret on the stack, twice: as bytes, and as a number that is no address of code. */
static __attribute__((noinline)) uint32_t ask_with_secret(char secret[static 24])
{
    volatile char mine[24];

    for (unsigned i = 0; i < sizeof mine; i++) {
        mine[i] = secret[i];
    }
    uint32_t number = fl_profile_saw(MIB);
    return mine[0] == secret[0] ? number : 0;
}

CASE(a_file_has_addresses_and_no_data)
{
    struct fl_profile_head now = {.live_bytes = 7, .kept_bytes = 8}, head;
    char secret[24] = "the password, no more";

    assert_int_equal(fl_profile_begin(1), 0);
    uint32_t number = ask_with_secret(secret);
    const char *stack = (const char *)(sample(number) + 1);
    assert_non_null(memmem(stack, sample(number)->stack_len, secret, 16));
    assert_int_equal(fl_profile_write(path, &now), 0);
    size_t all = read_text(path, text, sizeof text);
    memcpy(&head, text, sizeof head);
    assert_memory_equal(head.magic, FL_PROFILE_MAGIC, sizeof head.magic);
    assert_int_equal(head.slots, 1);
    assert_int_equal(head.live_bytes, 7);
    assert_int_equal(find("password", 8, all), 0);
    assert_true(find(" r-xp ", 6, all) >= 2); /* the program, and libc */
    assert_int_equal(find(" rw-p ", 6, all), 0);
    uint64_t up; /* a word that points into the stack is kept: frame pointers */
    size_t kept = 0;
    for (size_t at = sizeof head + sizeof(struct fl_profile_sample); at + 8 < all; at += 8) {
        memcpy(&up, text + at, sizeof up);
        kept += up != 0;
    }
    assert_true(kept > 4);
    assert_int_equal(fl_profile_write("/nonexistent/file", &now), -ENOENT);
}

CASES_MAIN(.group_setup = begin, .group_teardown = end)
