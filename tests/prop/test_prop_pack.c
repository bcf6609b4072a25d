/* Random lifetimes under the packer: layouts are right, by a checker that looks at each pair, not
 * below the bound, the lowest there is where few buffers can be tried in all orders, and the same
 * again for the same seed and work. */
#include "pack/pack.h"
#include "prop/seed.h"
#include "unit/cmocka_all.h"

#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS_FEW = 1000, ROUNDS_MANY = 150 };
#else
enum { ROUNDS_FEW = 5000, ROUNDS_MANY = 700 };
#endif
enum { FEW = 7, MANY = 300 };

static struct fl_pack_buffer buffer[MANY];
static _Alignas(4096) char scratch[4 << 20];
static uint64_t seed;

static uint64_t align_of(const struct fl_pack_buffer *b)
{
    return b->align == 0 ? 1 : b->align;
}

static uint64_t smallest_align(size_t n)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < n; i++) {
        if (buffer[i].size != 0 && buffer[i].birth < buffer[i].death) {
            least = align_of(&buffer[i]) < least ? align_of(&buffer[i]) : least;
        }
    }
    return least;
}

/* Sizes count in whole units of the smallest alignment, here as in the packer. */
static void round_sizes(size_t n)
{
    uint64_t unit = smallest_align(n);

    for (size_t i = 0; i < n && unit != UINT64_MAX; i++) {
        buffer[i].size = (buffer[i].size + unit - 1) / unit * unit;
    }
}

static bool meet(const struct fl_pack_buffer *a, const struct fl_pack_buffer *b)
{
    return a->size != 0 && b->size != 0 && a->birth < a->death && b->birth < b->death &&
           a->birth < b->death && b->birth < a->death;
}

/* ---- all orders ---- */

struct trial {
    uint64_t offset[FEW], height;
    unsigned order[FEW];
};

static uint64_t lowest(const struct trial *t, unsigned placed, unsigned b)
{
    uint64_t at = 0, align = align_of(&buffer[b]);

    for (unsigned k = 0; k < placed; k++) {
        unsigned other = t->order[k];
        uint64_t top = t->offset[other] + buffer[other].size;
        if (meet(&buffer[b], &buffer[other]) && top > at) {
            at = top;
        }
    }
    return (at + align - 1) / align * align;
}

/* The least height of any layout: it has an order in which each lies as low as those before it
 * allow. */
static uint64_t least_height(unsigned n)
{
    struct trial t = {.height = 0};
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < n; i++) {
        t.order[i] = i;
    }
    unsigned swaps[FEW + 1] = {0};
    for (unsigned i = 0; i <= n;) { /* Heap's algorithm */
        uint64_t height = 0;
        for (unsigned k = 0; k < n; k++) {
            unsigned b = t.order[k];
            if (buffer[b].size == 0 || buffer[b].birth >= buffer[b].death) {
                continue;
            }
            t.offset[b] = lowest(&t, k, b);
            uint64_t top = t.offset[b] + buffer[b].size;
            height = top > height ? top : height;
        }
        least = height < least ? height : least;
        for (i = 1; i < n && swaps[i] >= i; i++) {
            swaps[i] = 0;
        }
        if (i >= n) {
            break;
        }
        unsigned other = i % 2 == 0 ? 0 : swaps[i], kept = t.order[i];
        t.order[i] = t.order[other];
        t.order[other] = kept;
        swaps[i]++;
    }
    return n == 0 ? 0 : least;
}

/* ---- random input ---- */

static void fill(uint64_t *random, size_t n, uint64_t horizon, uint64_t sizes)
{
    uint64_t aligned = seed_next(random) % 3;

    for (size_t i = 0; i < n; i++) {
        uint64_t birth = seed_next(random) % horizon, life = seed_next(random) % horizon;
        buffer[i] = (struct fl_pack_buffer){
            .birth = birth,
            .death = birth + (seed_next(random) % 4 == 0 ? life : life % 6),
            .size = seed_next(random) % sizes,
            .align = aligned == 0 ? 0 : (uint64_t)1 << seed_next(random) % (aligned == 1 ? 3 : 8),
        };
    }
}

static struct fl_pack_result pack(size_t n, uint64_t work, uint64_t with)
{
    struct fl_pack_how how = {
        .budget_cost = work, .seed = with, .scratch = scratch, .scratch_len = sizeof scratch};
    struct fl_pack_result out;

    assert_int_equal(fl_pack(buffer, n, &how, &out), 0);
    return out;
}

static void assert_right(size_t n, struct fl_pack_result out)
{
    for (size_t i = 0; i < n; i++) {
        const struct fl_pack_buffer *a = &buffer[i];
        assert_int_equal(a->offset % align_of(a), 0);
        if (a->size != 0 && a->birth < a->death) {
            assert_true(a->offset + a->size <= out.height);
        }
        for (size_t k = 0; k < i; k++) {
            const struct fl_pack_buffer *b = &buffer[k];
            if (meet(a, b) && a->offset < b->offset + b->size && b->offset < a->offset + a->size) {
                fail_msg("%zu and %zu overlap", i, k);
            }
        }
    }
    assert_true(out.height >= out.bound);
}

static void few_are_packed_as_low_as_can_be(void **state)
{
    uint64_t random = seed;

    (void)state;
    for (unsigned round = 0; round < ROUNDS_FEW; round++) {
        unsigned n = (unsigned)(seed_next(&random) % (FEW + 1));
        fill(&random, n, 1 + seed_next(&random) % 12, 2 + seed_next(&random) % 14);
        round_sizes(n);
        /* no bound on work: it ends when no lower layout is left to be found */
        struct fl_pack_result out = pack(n, UINT64_MAX / 2, random);
        assert_right(n, out);
        uint64_t least = least_height(n);
        if (out.height != least || out.bound > least) {
            fail_msg("round %u: %u buffers, height %llu, bound %llu, least %llu", round, n,
                     (unsigned long long)out.height, (unsigned long long)out.bound,
                     (unsigned long long)least);
        }
    }
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
    for (unsigned round = 0; round < ROUNDS_MANY; round++) {
        size_t n = seed_next(&random) % (MANY + 1);
        fill(&random, n, 1 + seed_next(&random) % 200, 2 + seed_next(&random) % 5000);
        round_sizes(n);
        uint64_t work = seed_next(&random) % 3 * 3000;
        struct fl_pack_result out = pack(n, work, round);
        assert_right(n, out);
        assert_int_equal(out.bound, most_live(n));
        for (size_t i = 0; i < n; i++) {
            offset[i] = buffer[i].offset;
        }
        assert_int_equal(pack(n, work, round).height, out.height);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(offset[i], buffer[i].offset);
        }
        fl_pack_warm(buffer, n, out.height, scratch, sizeof scratch);
        assert_right(n, out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_packed_as_low_as_can_be),
        cmocka_unit_test(many_are_packed_right_and_alike_each_time),
    };
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
