/* Loops in the shape of training, and how much of them a plan serves in the end: gradients that are
 * accumulated, sizes that vary or grow, training and evaluation in turn. */
#include "unit/plan_fixture.h"

enum { LAYERS = 8, KEPT = 3, TOKENS = 64 };

struct block {
    char *p;
    size_t len;
};

static struct block kept[LAYERS][KEPT], gradient[LAYERS];
static bool left_out[LAYERS];
static uint64_t requests;

static int each(void **state)
{
    (void)state;
    plan_begin(NULL);
    return 0;
}

static size_t any(size_t n)
{
    static uint64_t random = 1;

    random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (random >> 33) % n;
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

/* So many steps; what is served of the last 40, in percent, or of all. */
static uint64_t steps(int n, void (*step)(int s))
{
    for (int s = 0; s < n; s++) {
        if (s == n - 40) {
            (void)served();
        }
        assert_int_equal(fl_plan_begin(NULL), 0);
        step(s);
        assert_int_equal(fl_plan_end(NULL), 0);
    }
    return served();
}

static void accumulation(int s)
{
    (void)s;
    train(8, TOKENS);
}

static void accumulation_with_sizes_that_vary(int s)
{
    (void)s;
    forward(any_of_six(), true);
    backward(any_of_six());
    train(3, any_of_six());
}

/* Two steps that are alike by chance are no reason to plan for just these sizes. */
static void sizes_that_vary(int s)
{
    train(1, s < 5 ? TOKENS : any_of_six());
}

static void training_and_evaluation_in_turn(int s)
{
    if (s % 30 < 20) {
        train(1, TOKENS);
    } else {
        forward(TOKENS, false);
    }
}

/* All forms but the first leave out a layer in a micro-step, each another one: 6 % of the requests.
 * The first one's plan serves all of them. */
static void in_turn(int form)
{
    forward(TOKENS, true);
    backward(TOKENS);
    left_out[form] = form != 0;
    train(1, TOKENS);
    left_out[form] = false;
}

static void two_forms_in_turn(int s)
{
    in_turn(s % 2);
}

static void three_forms_in_turn(int s)
{
    in_turn(s % 3);
}

struct pattern {
    void (*step)(int s);
    int steps;
    uint64_t percent; /* at least, that a plan serves in the end */
    bool may_drop;    /* plans on the way */
};

static void is_served(void **state)
{
    const struct pattern *p = *state;

    (void)each(NULL);
    assert_true(steps(p->steps, p->step) >= p->percent);
    assert_true(p->may_drop || plan_stats().drops == 0);
    assert_sound();
}

/* A fifth of the layers, other ones in each step: no step is like the next, and a plan would cost
 * more than it gives. */
static void leave_out_at_random(int s)
{
    (void)s;
    for (int l = 0; l < LAYERS; l++) {
        left_out[l] = any(5) == 0;
    }
    train(1, TOKENS);
}

static void layers_left_out_at_random_have_no_plan_for_long(void **state)
{
    (void)state;
    (void)steps(200, leave_out_at_random);
    assert_int_equal(plan_stats().drops, plan_stats().layouts);
    assert_true(plan_stats().steps < 20 &&
                plan_stats().recorded < 40); /* nor are they recorded for ever */
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_sound();
}

/* No form has what the other asks for: a plan of one would know nothing of the other. */
static void share_little(int s)
{
    train(s % 2 == 0 ? 3 : 1, s % 2 == 0 ? TOKENS / 2 + 1 : TOKENS);
}

static void forms_that_share_little_are_not_planned(void **state)
{
    (void)state;
    (void)steps(120, share_little);
    assert_int_equal(plan_stats().layouts, 0);
    assert_sound();
}

#define SERVED(f, steps, percent, may_drop)                                                        \
    {                                                                                              \
        .name = #f, .test_func = is_served,                                                        \
        .initial_state = &(struct pattern){f, steps, percent, may_drop},                           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(accumulation, 60, 98, false),
        SERVED(accumulation_with_sizes_that_vary, 100, 95, true),
        SERVED(sizes_that_vary, 105, 95, true),
        SERVED(training_and_evaluation_in_turn, 120, 95, false),
        SERVED(two_forms_in_turn, 120, 95, false),
        SERVED(three_forms_in_turn, 120, 95, false),
        cmocka_unit_test_setup(layers_left_out_at_random_have_no_plan_for_long, each),
        cmocka_unit_test_setup(forms_that_share_little_are_not_planned, each),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
