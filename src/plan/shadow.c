/* What a step would have needed without a plan: the shadow of an allocator that knows nothing of what is to come, and puts each block into the
 * shortest gap that holds it, or on top. Pure. */
#include "plan/internal.h"
#include "plan/pack.h"

#include <string.h>

struct block {
    uint64_t from, to;
    uint64_t size;
    bool inside; /* a plan's arena */
};

struct shadow {
    const struct fl_lives *step;
    const struct fl_slot *slot;    /* NULL: each life says whether it was inside */
    uint64_t len;                  /* of the step, by its clock */
    uint64_t *death;               /* as they were at the beginning: late frees go on writing */
    uint64_t *at[2];               /* of each life's block, in the first and in the second round */
    uint32_t *by_birth, *by_death; /* of lives that end */
    size_t n;
    struct block *block; /* live, by address */
    size_t blocks;
    uint64_t work;
    uint64_t inside, outside; /* bytes now */
    struct fl_shadow_peaks *out;
};

size_t fl_shadow_scratch(size_t n)
{
    /* What is live of both rounds, three numbers and two indexes each, and what sorting needs: 24 bytes each, and its counts. */
    return (2 * n + 1) * sizeof(struct block) + n * (4 * sizeof(uint64_t) + 8 + 24) +
           (size_t)16 * FL_CACHE_LINE + (size_t)8 * FL_KIB;
}

/* Those that are never freed are nobody's to plan. */
static bool sort(struct shadow *s, struct fl_pack_arena a, uint64_t *birth)
{
    const struct fl_life *life = s->step->life;

    for (size_t i = 0; i < s->step->n; i++) {
        s->death[i] = __atomic_load_n(&life[i].death, __ATOMIC_RELAXED);
        birth[i] = life[i].birth;
        if (s->death[i] != FL_LIFE_NEVER && s->death[i] > birth[i] && life[i].size != 0) {
            s->by_birth[s->n] = s->by_death[s->n] = (uint32_t)i;
            s->n++;
        }
    }
    return fl_pack_sort(a, s->by_birth, birth, s->n) &&
           fl_pack_sort(a, s->by_death, s->death, s->n);
}

static bool prepare(struct shadow *s, struct fl_pack_arena a)
{
    size_t n = s->step->n;
    uint64_t *birth = fl_pack_carve(&a, n, sizeof *birth);

    s->death = fl_pack_carve(&a, n, sizeof *s->death);
    s->at[0] = fl_pack_carve(&a, n, sizeof *s->at[0]);
    s->at[1] = fl_pack_carve(&a, n, sizeof *s->at[1]);
    s->by_birth = fl_pack_carve(&a, n, sizeof *s->by_birth);
    s->by_death = fl_pack_carve(&a, n, sizeof *s->by_death);
    s->block = fl_pack_carve(&a, 2 * n + 1, sizeof *s->block);
    return birth != NULL && s->death != NULL && s->at[0] != NULL && s->at[1] != NULL &&
           s->by_birth != NULL && s->by_death != NULL && s->block != NULL && sort(s, a, birth);
}

/* Where the first block at `from` or above is. */
static size_t find(const struct shadow *s, uint64_t from)
{
    size_t a = 0, b = s->blocks;

    while (a < b) {
        size_t mid = a + (b - a) / 2;
        if (s->block[mid].from < from) {
            a = mid + 1;
        } else {
            b = mid;
        }
    }
    return a;
}

static bool is_inside(const struct shadow *s, uint32_t life)
{
    return s->slot != NULL ? fl_slot_is_served(&s->slot[life]) : s->step->life[life].inside;
}

static void put(struct shadow *s, uint32_t life, unsigned round)
{
    const struct fl_life *l = &s->step->life[life];
    uint64_t size = __atomic_load_n(&l->size, __ATOMIC_RELAXED);
    uint64_t unit = size >= FL_HUGE_FROM ? fl_page.huge : FL_GRANULE;
    uint64_t len = fl_align_up(size, unit), least = UINT64_MAX, top = 0, where = 0;
    size_t place = s->blocks;

    unit = fl_max(unit, l->align);
    for (size_t i = 0; i <= s->blocks; i++) {
        uint64_t from = fl_align_up(top, unit);
        uint64_t to = i < s->blocks ? s->block[i].from : UINT64_MAX;
        if (to - top < least && from <= to && to - from >= len) {
            least = to - top;
            where = from;
            place = i;
        }
        top = i < s->blocks ? s->block[i].to : top;
    }
    memmove(&s->block[place + 1], &s->block[place], (s->blocks - place) * sizeof *s->block);
    s->block[place] = (struct block){where, where + len, size, is_inside(s, life)};
    s->blocks++;
    s->at[round][life] = where;
    s->work += s->blocks;
    *(is_inside(s, life) ? &s->inside : &s->outside) += size;
    s->out->online = fl_max(s->out->online, where + len);
    s->out->inside = fl_max(s->out->inside, s->inside);
    s->out->outside = fl_max(s->out->outside, s->outside);
}

static void take_out(struct shadow *s, uint32_t life, unsigned round)
{
    size_t i = find(s, s->at[round][life]);

    *(s->block[i].inside ? &s->inside : &s->outside) -= s->block[i].size;
    s->blocks--;
    memmove(&s->block[i], &s->block[i + 1], (s->blocks - i) * sizeof *s->block);
    s->work += s->blocks - i;
}

/* Ends what ends up to `time` of the first round's clock. */
static void end_until(struct shadow *s, uint64_t time, size_t next[static 2])
{
    for (unsigned round = 0; round < 2; round++) {
        for (; next[round] < s->n; next[round]++) {
            uint32_t life = s->by_death[next[round]];
            if (s->death[life] + round * s->len > time) {
                break;
            }
            take_out(s, life, round);
        }
    }
}

bool fl_shadow(const struct fl_lives *step, const struct fl_slot *slot, uint64_t most_work,
               struct fl_shadow_peaks *out, void *scratch, size_t scratch_len)
{
    struct fl_pack_arena a = {scratch, (char *)scratch + scratch_len};
    struct shadow s = {.step = step, .slot = slot, .len = step->end - step->begin, .out = out};
    size_t next[2] = {0, 0};

    *out = (struct fl_shadow_peaks){0, 0, 0};
    if (!prepare(&s, a)) {
        return false;
    }
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < s.n && s.work < most_work; i++) {
            uint32_t life = s.by_birth[i];
            end_until(&s, step->life[life].birth + round * s.len, next);
            put(&s, life, round);
        }
    }
    return s.work < most_work;
}
