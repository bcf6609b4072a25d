/* Loops in the shape of training, and how much of them a plan serves in the end: gradients that are
 * accumulated, sizes that vary or grow, training and evaluation in turn. */
#include "unit/plan_fixture.h"

#include <string.h>

enum { LAYERS = 8, KEPT = 3, TOKENS = 64 };

struct block {
    char *p;
    size_t len;
};

static struct block kept[LAYERS][KEPT], gradient[LAYERS];
static bool left_out[LAYERS];
static uint64_t random_state, requests;

static int each(void **state)
{
    (void)state;
    plan_begin(NULL);
    memset(kept, 0, sizeof kept);
    memset(gradient, 0, sizeof gradient);
    memset(left_out, 0, sizeof left_out);
    random_state = 1;
    return 0;
}

static size_t any(size_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (random_state >> 33) % n;
}

static struct block get(size_t len)
{
    struct block b = {fl_malloc_large(len), len};

    assert_non_null(b.p);
    b.p[0] = b.p[len - 1] = (char)(len >> 12);
    requests++;
    return b;
}

static void put(struct block *b)
{
    if (b->p != NULL) {
        assert_true(b->p[0] == (char)(b->len >> 12) && b->p[b->len - 1] == b->p[0]);
        fl_free_ours(b->p);
    }
    *b = (struct block){NULL, 0};
}

static size_t activation(size_t tokens, int i)
{
    static const size_t share[] = {3, 5, 7, 4, 6};

    return KIB(4) * share[i % 5] * tokens;
}

static size_t weight(int layer)
{
    return KIB(100) + KIB(36) * (size_t)(layer % 5);
}

static void forward(size_t tokens, bool keep)
{
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < KEPT && !left_out[l]; i++) {
            struct block b = get(activation(tokens, i + l % 2)), brief = get(activation(tokens, 3));
            put(&brief);
            if (keep) {
                kept[l][i] = b;
            } else {
                put(&b);
            }
        }
    }
}

static void backward(size_t tokens)
{
    for (int l = LAYERS - 1; l >= 0; l--) {
        if (left_out[l]) {
            continue;
        }
        struct block in = get(activation(tokens, 4)), more = get(weight(l));
        for (int i = KEPT - 1; i >= 0; i--) {
            put(&kept[l][i]);
        }
        put(gradient[l].p == NULL ? &in : &more);
        if (gradient[l].p == NULL) {
            gradient[l] = more;
        } else {
            put(&in);
        }
    }
}

static void optimize(void)
{
    for (int l = 0; l < LAYERS; l++) {
        struct block b = get(weight(l));
        put(&b);
        put(&gradient[l]);
    }
}

static void train(int micro_steps, size_t tokens)
{
    for (int i = 0; i < micro_steps; i++) {
        forward(tokens, true);
        backward(tokens);
    }
    optimize();
}

static size_t any_of_six(void)
{
    return TOKENS - any(6) * TOKENS / 8;
}

/* Of all requests since the last time, in percent. */
static uint64_t served(void)
{
    static uint64_t asked_before, hits_before;
    uint64_t hits = plan_stats().hits, asked = requests - asked_before;
    uint64_t percent = asked != 0 ? (hits - hits_before) * 100 / asked : 0;

    asked_before = requests;
    hits_before = hits;
    return percent;
}

static void begin(void)
{
    assert_int_equal(fl_plan_begin(NULL), 0);
}

static void end(void)
{
    assert_int_equal(fl_plan_end(NULL), 0);
}

static void train_step(int micro_steps, size_t tokens)
{
    begin();
    train(micro_steps, tokens);
    end();
}

static void accumulation(void **state)
{
    (void)state;
    for (int s = 0; s < 20; s++) {
        train_step(8, TOKENS);
    }
    (void)served();
    for (int s = 0; s < 20; s++) {
        train_step(8, TOKENS);
    }
    assert_true(served() >= 98);
    assert_sound();
}

static void accumulate_any_sizes(int steps)
{
    for (int s = 0; s < steps; s++) {
        begin();
        forward(any_of_six(), true);
        backward(any_of_six());
        train(3, any_of_six());
        end();
    }
}

static void accumulation_with_sizes_that_vary(void **state)
{
    (void)state;
    accumulate_any_sizes(60);
    (void)served();
    accumulate_any_sizes(20);
    assert_true(served() >= 95);
}

/* Two steps that are alike by chance are no reason to plan for just these sizes. */
static void sizes_that_vary(void **state)
{
    (void)state;
    for (int s = 0; s < 5; s++) {
        train_step(1, TOKENS);
    }
    for (int s = 0; s < 60; s++) {
        train_step(1, any_of_six());
    }
    (void)served();
    for (int s = 0; s < 20; s++) {
        train_step(1, any_of_six());
    }
    assert_true(served() >= 95);
}

/* A fifth of the layers is left out, other ones in each step: no step is like the next, and a plan
 * would cost more than it gives. */
static void layers_left_out_at_random_have_no_plan_for_long(void **state)
{
    (void)state;
    for (int s = 0; s < 200; s++) {
        for (int l = 0; l < LAYERS; l++) {
            left_out[l] = any(5) == 0;
        }
        train_step(1, TOKENS);
    }
    assert_int_equal(plan_stats().drops, plan_stats().layouts);
    assert_true(plan_stats().steps < 20 &&
                plan_stats().recorded < 40); /* nor are they recorded for ever */
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_sound();
}

static void training_and_evaluation_in_turn(void **state)
{
    (void)state;
    for (int s = 0; s < 120; s++) {
        if (s == 60) {
            (void)served();
        }
        begin();
        if (s % 30 < 20) {
            train(1, TOKENS);
        } else {
            forward(TOKENS, false);
        }
        end();
    }
    assert_true(served() >= 95);
    assert_int_equal(plan_stats().drops, 0);
}

/* All forms but the first leave out a layer in a micro-step, each another one: 6 % of the requests.
 * The first one's plan serves all of them. */
static void in_turn(int forms)
{
    for (int s = 0; s < 120; s++) {
        if (s == 60) {
            (void)served();
        }
        begin();
        forward(TOKENS, true);
        backward(TOKENS);
        left_out[s % forms] = s % forms != 0;
        train(1, TOKENS);
        left_out[s % forms] = false;
        end();
    }
    assert_true(served() >= 95);
    assert_int_equal(plan_stats().drops, 0);
    assert_sound();
}

static void two_forms_in_turn(void **state)
{
    (void)state;
    in_turn(2);
}

static void three_forms_in_turn(void **state)
{
    (void)state;
    in_turn(3);
}

/* No form has what the other asks for: a plan of one would know nothing of the other. */
static void forms_that_share_little_are_not_planned(void **state)
{
    (void)state;
    for (int s = 0; s < 120; s++) {
        bool longer = s % 2 == 0;
        train_step(longer ? 3 : 1, longer ? TOKENS / 2 + 1 : TOKENS);
    }
    assert_int_equal(plan_stats().layouts, 0);
    assert_sound();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, each)
    const struct CMUnitTest tests[] = {
        T(accumulation),
        T(accumulation_with_sizes_that_vary),
        T(sizes_that_vary),
        T(layers_left_out_at_random_have_no_plan_for_long),
        T(training_and_evaluation_in_turn),
        T(two_forms_in_turn),
        T(three_forms_in_turn),
        T(forms_that_share_little_are_not_planned),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
