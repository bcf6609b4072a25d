/* Random lifetimes under the packer: layouts are right, by a checker that looks at each pair, not
 * below the bound, and the same again. */
#include "pack/pack.h"
#include "prop/seed.h"
#include "unit/cmocka_all.h"
#include "unit/packed.h"

#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS = 150 };
#else
enum { ROUNDS = 700 };
#endif
enum { MANY = 300 };

static struct fl_pack_buffer buffer[MANY];
static _Alignas(4096) char scratch[4 << 20];
static uint64_t seed;

/* Sizes are whole units of the smallest alignment: what the bound counts in. */
static void fill(uint64_t *random, size_t n, uint64_t horizon, uint64_t sizes)
{
    uint64_t aligned = seed_next(random) % 3, unit = (uint64_t)1 << seed_next(random) % 4;

    for (size_t i = 0; i < n; i++) {
        uint64_t birth = seed_next(random) % horizon, life = seed_next(random) % horizon;
        uint64_t shift = seed_next(random) % (aligned == 1 ? 3 : 8);
        buffer[i] = (struct fl_pack_buffer){
            .birth = birth,
            .death = birth + (seed_next(random) % 4 == 0 ? life : life % 6),
            .size = seed_next(random) % sizes * unit,
            .align = aligned == 0 ? 0 : unit << shift,
        };
    }
    buffer[0] = (struct fl_pack_buffer){.death = 1, .size = unit, .align = unit};
}

static struct fl_pack_result pack(size_t n)
{
    struct fl_pack_result out;

    assert_int_equal(fl_pack(buffer, n, scratch, sizeof scratch, &out), 0);
    return out;
}

static void assert_right(size_t n, struct fl_pack_result out)
{
    assert_true(packed_well(buffer, n, out.height));
    assert_true(out.height >= out.bound);
}

static uint64_t most_live(size_t n)
{
    uint64_t most = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t live = 0;
        for (size_t k = 0; k < n; k++) {
            bool is_there = buffer[k].birth <= buffer[i].birth && buffer[i].birth < buffer[k].death;
            live += is_there ? buffer[k].size : 0;
        }
        most = live > most ? live : most;
    }
    return most;
}

static void many_are_packed_right_and_alike_each_time(void **state)
{
    uint64_t random = seed + 1;
    static uint64_t offset[MANY];

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t n = seed_next(&random) % (MANY + 1);
        fill(&random, n, 1 + seed_next(&random) % 200, 2 + seed_next(&random) % 5000);
        struct fl_pack_result out = pack(n);
        assert_right(n, out);
        assert_int_equal(out.bound, most_live(n));
        for (size_t i = 0; i < n; i++) {
            offset[i] = buffer[i].offset;
        }
        assert_int_equal(pack(n).height, out.height);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(offset[i], buffer[i].offset);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_are_packed_right_and_alike_each_time),
    };
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
