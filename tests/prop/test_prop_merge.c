/* Random programs, recorded several times with jitter: frees that come sooner or later, requests
 * that are missing or one too many, sizes that move. Every pair of planned slots that lived at once
 * in any step does so in the slots. */
#include "plan/plan.h"
#include "prop/seed.h"
#include "unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400, MOST = 240, STEP = 100000 };

/* What a request of the program is, whichever step. */
struct request {
    uint64_t size, birth, death;
};

struct step {
    struct fl_life life[MOST];
    unsigned request[MOST]; /* which of the program's it is; MOST: one of this step alone */
    size_t n;
};

static struct request program[MOST];
static struct step step[FL_MERGE_STEPS];
static struct fl_slot slot[MOST];
static uint64_t seed;

static uint64_t below(uint64_t n)
{
    return seed_next(&seed) % n;
}

static size_t make_program(void)
{
    size_t n = 1 + below(MOST - 40);

    for (size_t i = 0; i < n; i++) {
        program[i].size = (1 + below(below(4) == 0 ? 10000 : 50)) * 4096;
        program[i].birth = (i == 0 ? 1000 : program[i - 1].birth) + below(4 * STEP / (5 * n) * 2);
        program[i].birth = program[i].birth < STEP - 5000 ? program[i].birth : STEP - 5000;
        program[i].death = program[i].birth + below(below(3) == 0 ? STEP / 2 : 3000);
        if (below(30) == 0) {
            program[i].death += STEP;
        }
        if (below(40) == 0) {
            program[i].death = FL_LIFE_NEVER;
        }
    }
    return n;
}

static void add(struct step *s, unsigned request, struct fl_life l)
{
    const struct fl_life *last = s->n > 0 ? &s->life[s->n - 1] : NULL;

    l.birth = last != NULL && l.birth < last->birth ? last->birth : l.birth;
    l.death = l.death < l.birth ? l.birth : l.death;
    s->request[s->n] = request;
    s->life[s->n++] = l;
}

/* `jitter`: how far each event may be late; `odd`: of a thousand requests, how many are missing,
 * and how many too many. */
static void record(struct step *s, size_t n, uint64_t begin, uint64_t jitter, uint64_t odd,
                   uint64_t scale)
{
    s->n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct request *r = &program[i];
        struct fl_life l = {.size = r->size * scale / 4 / 4096 * 4096 + 4096,
                            .birth = begin + r->birth + below(jitter),
                            .death = r->death + begin + below(jitter),
                            .align = UINT64_C(1) << below(17)};
        l.asked = l.size - below(4096);
        /* within the step is within, in each of them */
        l.birth = l.birth > begin + STEP ? begin + STEP : l.birth;
        l.death = r->death < STEP && l.death > begin + STEP ? begin + STEP : l.death;
        l.death = r->death == FL_LIFE_NEVER ? r->death : l.death;
        if (below(1000) < odd) {
            continue;
        }
        add(s, (unsigned)i, l);
        if (below(1000) < odd && s->n < MOST - n + i) {
            l.size = (1 + below(500)) * 4096;
            l.asked = l.size;
            add(s, MOST, l);
        }
    }
}

static bool meet(const struct fl_life *a, const struct fl_life *b)
{
    return a->birth < b->death && b->birth < a->death;
}

static bool is_planned(const struct fl_slot *s)
{
    return s->kind <= FL_SLOT_DOUBLE_BUFFERED;
}

static void check_slots(const struct step *newest)
{
    for (size_t i = 0; i < newest->n; i++) {
        const struct fl_slot *s = &slot[i];
        const struct fl_life *l = &newest->life[i];
        assert_true(s->least <= l->asked && l->asked <= s->most && s->most <= s->size);
        assert_true(s->size >= l->size && s->align >= l->align && s->kind <= FL_SLOT_KEPT);
        assert_true(s->birth < s->death && s->death <= newest->n);
        assert_true(s->kind != FL_SLOT_SPANS_STEPS || (s->birth == 0 && s->death == newest->n));
        assert_true(s->kind != FL_SLOT_DOUBLE_BUFFERED || (s->birth == 0 && s->death == newest->n));
    }
}

static void check_conflicts(const struct step *newest, const struct step *s)
{
    for (size_t a = 0; a < newest->n; a++) {
        for (size_t b = a + 1; b < newest->n; b++) {
            const struct fl_life *la = NULL, *lb = NULL;
            if (!is_planned(&slot[a]) || !is_planned(&slot[b]) || newest->request[a] == MOST ||
                newest->request[b] == MOST) {
                continue;
            }
            for (size_t i = 0; i < s->n; i++) {
                la = s->request[i] == newest->request[a] ? &s->life[i] : la;
                lb = s->request[i] == newest->request[b] ? &s->life[i] : lb;
            }
            if (la != NULL && lb != NULL && meet(la, lb)) {
                assert_true(slot[a].birth < slot[b].death && slot[b].birth < slot[a].death);
            }
        }
    }
}

static int merge(size_t nsteps)
{
    struct fl_lives lives[FL_MERGE_STEPS];
    size_t len = fl_merge_scratch(step[0].n, nsteps);
    unsigned char *scratch = malloc(len);
    uint64_t largest;

    memset(scratch, 0xa5, len);
    for (size_t j = 0; j < nsteps; j++) {
        uint64_t begin = (nsteps - j) * STEP;
        lives[j] = (struct fl_lives){step[j].life, step[j].n, begin, begin + STEP, 0};
    }
    int rc = fl_merge(lives, nsteps, slot, &largest, scratch, len);
    free(scratch);
    return rc;
}

/* Nothing missing: which is which is known, so that each conflict is looked for. */
static void conflicts_of_all_steps_are_kept(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t n = make_program(), nsteps = 1 + below(FL_MERGE_STEPS);
        uint64_t jitter = 1 + below(below(2) == 0 ? 300 : 20000);
        bool scales = below(3) == 0;
        for (size_t j = 0; j < nsteps; j++) {
            record(&step[j], n, (nsteps - j) * STEP, jitter, 0, scales ? 1 + below(12) : 4);
        }
        int rc = merge(nsteps);
        assert_true(rc == 0 || (rc == -EAGAIN && scales));
        if (rc != 0) { /* where all sizes and all lifetimes move, too few may be found again */
            continue;
        }
        check_slots(&step[0]);
        for (size_t j = 0; j < nsteps && !scales; j++) {
            check_conflicts(&step[0], &step[j]);
        }
    }
}

/* Some missing, some too many, and all the same sizes but for those: the right ones are found. */
static void requests_are_found_again(void **state)
{
    size_t found = 0, wrong = 0, refused = 0;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t n = make_program(), nsteps = 2;
        for (size_t j = 0; j < nsteps; j++) {
            record(&step[j], n, (nsteps - j) * STEP, 200, 10, 4);
        }
        for (size_t i = 0; i < step[1].n; i++) { /* a mark that is seen in the slots */
            step[1].life[i].align = UINT64_C(1) << 40;
        }
        int rc = merge(nsteps);
        refused += rc != 0;
        if (rc != 0) { /* by chance more than a twentieth differ */
            continue;
        }
        check_slots(&step[0]);
        check_conflicts(&step[0], &step[0]);
        for (size_t i = 0; i < step[0].n; i++) {
            bool there = false;
            for (size_t k = 0; k < step[1].n && step[0].request[i] != MOST; k++) {
                there = there || step[1].request[k] == step[0].request[i];
            }
            found += there;
            wrong += there != (slot[i].align == UINT64_C(1) << 40);
        }
    }
    fprintf(stderr, "found again: %zu, wrong: %zu\n", found, wrong);
    assert_true(wrong * 50 < found);
    assert_true(refused * 10 < ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conflicts_of_all_steps_are_kept),
        cmocka_unit_test(requests_are_found_again),
    };
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
