/* Small blocks of planned steps: the pages below the program break are in memory before a step
 * touches them. */
#include "unit/plan_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

static const struct fl_plan_config with_worker = {.on = true, .background = true};

static void begin(const struct fl_plan_config *c)
{
    plan_begin(c);
    fl_heap_start();
}

/* Of the last `len` bytes below the break, how many are in memory. */
static size_t resident(size_t len)
{
    static unsigned char page[1024];
    char *end = sbrk(0);
    size_t sum = 0;

    assert_int_equal((uintptr_t)end % 4096, 0);
    assert_true(len / 4096 <= sizeof page);
    assert_int_equal(mincore(end - len, len, page), 0);
    for (size_t i = 0; i < len / 4096; i++) {
        sum += (page[i] & 1u) != 0 ? 4096 : 0;
    }
    return sum;
}

static void grow(size_t len)
{
    char *end = sbrk(0);
    size_t edge = -(uintptr_t)end & 4095;

    assert_true(sbrk((intptr_t)(len + edge)) != (void *)-1);
    assert_int_equal(madvise(end + edge, len, MADV_NOHUGEPAGE), 0); /* pages one by one */
}

/* A planned step is over, and the worker comes. Was it called? */
static bool step_is_over(void)
{
    fl_plan_calls = false;
    fl_heap_look();
    bool called = fl_plan_calls;
    if (called) {
        fl_heap_work();
    }
    return called;
}

static void the_heaps_end_is_brought_into_memory(void **state)
{
    (void)state;
    begin(&with_worker);
    grow(KIB(512));
    assert_int_equal(resident(KIB(512)), 0);
    assert_true(step_is_over());
    assert_int_equal(resident(KIB(256)), KIB(256));
    assert_int_equal(resident(KIB(512)), KIB(256)); /* what lies deeper was not touched */
    assert_false(step_is_over());
    grow(KIB(132));
    assert_true(step_is_over());
    assert_int_equal(resident(KIB(132)), KIB(132));
    assert_int_equal(resident(KIB(512)), KIB(132) + KIB(256));
}

static void a_break_that_goes_back_is_followed(void **state)
{
    (void)state;
    begin(&with_worker);
    grow(KIB(256));
    assert_true(step_is_over());
    assert_true(sbrk(-(intptr_t)KIB(192)) != (void *)-1);
    assert_true(step_is_over());
    grow(KIB(192));
    assert_int_equal(resident(KIB(192)), 0);
    fl_heap_look();
    grow(KIB(64)); /* before the worker comes */
    fl_heap_work();
    assert_int_equal(resident(KIB(256)), 0);
    assert_true(step_is_over());
    assert_int_equal(resident(KIB(256)), KIB(256));
}

static void it_comes_back_to_where_it_was(void **state)
{
    (void)state;
    begin(&with_worker);
    grow(KIB(128));
    assert_true(step_is_over());
    grow(KIB(64));
    fl_heap_look();
    assert_true(sbrk(-(intptr_t)KIB(64)) != (void *)-1); /* before the worker comes */
    fl_heap_work();
    assert_false(step_is_over());
    grow(KIB(64));
    assert_true(step_is_over());
    assert_int_equal(resident(KIB(64)), KIB(64));
}

static void a_break_amid_a_page_is_one_too(void **state)
{
    (void)state;
    begin(&with_worker);
    grow(KIB(128));
    assert_true(sbrk(1000) != (void *)-1);
    assert_true(step_is_over());
    assert_true(sbrk(3096) != (void *)-1);
    assert_int_equal(resident(KIB(132)), KIB(132));
}

static void what_lay_there_before_is_left_alone(void **state)
{
    (void)state;
    grow(KIB(256));
    begin(&with_worker);
    (void)step_is_over();
    assert_int_equal(resident(KIB(256)), 0);
}

static void without_a_worker_nothing_is_done(void **state)
{
    (void)state;
    begin(NULL);
    grow(KIB(256));
    assert_false(step_is_over());
    assert_int_equal(resident(KIB(256)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heaps_end_is_brought_into_memory),
        cmocka_unit_test(a_break_that_goes_back_is_followed),
        cmocka_unit_test(it_comes_back_to_where_it_was),
        cmocka_unit_test(a_break_amid_a_page_is_one_too),
        cmocka_unit_test(what_lay_there_before_is_left_alone),
        cmocka_unit_test(without_a_worker_nothing_is_done),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
