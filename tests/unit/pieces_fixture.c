#include "unit/pieces_fixture.h"

#include "unit/cmocka_all.h"

struct fl_extent *block[BLOCKS];

int blocks_begin(void **state)
{
    region_begin(NULL);
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = take(KIB(512));
        fill(block[i], (unsigned char)(i + 1));
    }
    guards_also = assert_live_is_as_it_was_at;
    fake_forget();
    return 0;
}

void give_block(int i)
{
    give(block[i]);
    block[i] = NULL;
}

void give_but(int kept)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (i % kept != 0) {
            give_block(i);
        }
    }
}

void assert_live_is_as_it_was_at(const char *file, int line)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (block[i] != NULL && !is_filled(block[i], (unsigned char)(i + 1))) {
            print_error("block %d has changed\n", i);
            _fail(file, line);
        }
    }
    assert_settled_at(file, line);
}

void tick_times(int n)
{
    for (int i = 0; i < n; i++) {
        (void)fl_region_tick(&region, 4);
    }
}

size_t resident(void)
{
    struct fl_range all = {region.space.first, MIB(8)};
    size_t sum = 0;

    assert_int_equal(fl_sys_linux.resident(all, &sum), 0);
    return sum;
}

unsigned advised(enum fl_sys_advice advice)
{
    unsigned n = 0;

    for (size_t i = 0; i < fl_min(fake.nlog, FAKE_LOG); i++) {
        n += fake.log[i].slot == FAKE_ADVISE && fake.log[i].advice == advice && fake.log[i].rc == 0;
    }
    return n;
}
