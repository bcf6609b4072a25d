/* Plan files as an attacker would write them: real ones with bits turned, numbers put
 * elsewhere, counts that are huge, cut short, and most of them with the right checksum. Each is
 * refused, or its layouts are such as may be served, by a checker that looks at each pair of
 * blocks. */
#include "plan/store/store.h"
#include "prop/seed.h"
#include "unit/plan_fixture.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS = 20000 };
#else
enum { ROUNDS = 100000 };
#endif
enum {
    BASES = 64,
    SLOTS = 24,
    PLANS = 3,
    ROOM = 1 << 16,
    WALL = 4 << 20,
    HORIZON = 60,
    HEAD = FL_FILE_HEAD,
    PLAN = 48,
    SLOT = sizeof(struct fl_slot)
};

static uint64_t seed;
static _Alignas(8) unsigned char base[BASES][ROOM];
static size_t base_len[BASES];
static _Alignas(8) unsigned char work[ROOM];
static struct {
    unsigned accepted, overlapping, other, version, length, checksum, content;
} seen;

static uint64_t below(uint64_t n)
{
    return seed_next(&seed) % n;
}

/* ---- real files ---- */

static void fill_slot(struct fl_slot *s)
{
    static const uint64_t most[] = {FL_MIB / 4, 4 * FL_MIB, 100 * (uint64_t)FL_MIB};
    uint64_t birth = below(HORIZON), size = 4096 * (1 + below(most[below(3)] / 4096));

    *s = (struct fl_slot){.size = size,
                          .least = below(2) ? size : 1 + below(size),
                          .most = size,
                          .align = UINT64_C(1) << below(FL_GRANULE_SHIFT + 1),
                          .birth = birth,
                          .death = birth + 1 + below(HORIZON - birth),
                          .offset = {FL_PACK_NONE, FL_PACK_NONE},
                          .kind = (enum fl_slot_kind)below(FL_SLOT_KEPT + 1)};
    if (s->kind == FL_SLOT_SPANS_STEPS || s->kind == FL_SLOT_DOUBLE_BUFFERED) {
        s->birth = 0;
        s->death = HORIZON;
    }
    s->zone = s->kind == FL_SLOT_DOUBLE_BUFFERED ? (uint32_t)below(FL_PLAN_ZONES + 1) : 0;
}

/* As engine.c does it. */
static struct fl_layout *pack(void)
{
    struct fl_layout *l = fl_layout_new(1 + below(SLOTS));

    assert_non_null(l);
    for (uint32_t i = 0; i < l->n; i++) {
        fill_slot(&l->slot[i]);
    }
    assert_int_equal(fl_engine_pack(l), 0);
    return l;
}

static void make_base(unsigned which)
{
    struct fl_file f;
    unsigned plans = 1 + (unsigned)below(PLANS);

    assert_true(fl_file_begin(&f, base[which], ROOM));
    for (unsigned i = 0; i < plans; i++) {
        struct fl_layout *l = pack();
        struct fl_file_plan p = {.key = below(3),
                                 .signature = seed_next(&seed),
                                 .horizon = HORIZON,
                                 .height = l->height,
                                 .granule = FL_GRANULE,
                                 .slot = l->slot,
                                 .n = l->n};
        assert_int_equal(fl_file_add(&f, &p), 0);
        fl_layout_free(l);
    }
    base_len[which] = fl_file_end(&f);
}

/* ---- what is done to them ---- */

static uint64_t odd_number(void)
{
    static const uint64_t odd[] = {0,       1,          4096,      FL_GRANULE,
                                   HORIZON, UINT32_MAX, INT64_MAX, UINT64_MAX};
    uint64_t n = below(2) ? odd[below(sizeof odd / sizeof odd[0])] : UINT64_C(1) << below(64);

    return n + below(3) - 1;
}

/* Where numbers are: each 4 bytes, from the plans on. */
static size_t somewhere(size_t len)
{
    return HEAD + 4 * below((len - HEAD) / 4);
}

static void put(unsigned char *file, size_t len, size_t at, uint64_t v, size_t bytes)
{
    v = htole64(v);
    memcpy(file + at, &v, fl_min(bytes, len - at));
}

static uint64_t get(const unsigned char *file, size_t len, size_t at)
{
    uint64_t v = 0;

    memcpy(&v, file + at, fl_min(sizeof v, len - at));
    return le64toh(v);
}

/* A count of slots; now and then the file ends there, too. */
static size_t put_count(unsigned char *file, size_t len)
{
    uint64_t n = below(2) == 0 ? below(SLOTS) : odd_number();
    size_t cost = fl_file_cost(n);

    put(file, len, HEAD + 40, n, 8);
    if (below(2) && cost <= len - HEAD) {
        put(file, len, 12, 1, 4);
        return HEAD + cost;
    }
    return len;
}

/* Slots lie at multiples of SLOT behind the first plan's head. */
static size_t some_slot(size_t len)
{
    return HEAD + PLAN + SLOT * below((len - HEAD - PLAN) / SLOT);
}

static void swap_slots(unsigned char *file, size_t len)
{
    size_t a = some_slot(len), b = some_slot(len), from = 8 * below(8), n = 1 + below(SLOT - from);

    memmove(file + a + from, file + b + from, n);
}

/* What leaves each number by itself one that may be: only together they are wrong. */
static void change_slot(unsigned char *file, size_t len)
{
    size_t slot = some_slot(len);
    uint64_t granules = FL_GRANULE * (below(65) - 32);

    switch (below(5)) {
    case 0: /* its place, or the second one too */
        put(file, len, slot + 56, get(file, len, slot + 56) + granules, 8);
        if (below(2)) {
            put(file, len, slot + 64, get(file, len, slot + 64) + granules, 8);
        }
        break;
    case 1: /* longer */
        put(file, len, slot, get(file, len, slot) + (granules & 0xffffff), 8);
        break;
    case 2: /* all of the step */
        put(file, len, slot + 40, 0, 8);
        put(file, len, slot + 48, HORIZON, 8);
        break;
    case 3: /* its alignment */
        put(file, len, slot + 32, UINT64_C(1) << below(50), 8);
        break;
    default: /* the layout's height */
        put(file, len, HEAD + 24, get(file, len, HEAD + 24) + (granules << below(8)), 8);
    }
}

static size_t mutate(unsigned char *file, size_t len)
{
    size_t at = somewhere(len), other = somewhere(len);

    switch (below(15)) {
    case 0:
        file[at + below(4)] ^= (unsigned char)(1 << below(8));
        return len;
    case 1:
        return below(2) ? len - SLOT : below(len);
    case 2:
        put(file, len, at, odd_number(), 4 << below(2));
        return len;
    case 3: /* a number of another field */
        put(file, len, at, get(file, len, other), 4 << below(2));
        return len;
    case 4:
        return put_count(file, len);
    case 5:
        put(file, len, at, get(file, len, at) + below(33) - 16, 8);
        return len;
    case 6:
        swap_slots(file, len);
        return len;
    case 7:
        put(file, len, 4 * below(HEAD / 4), odd_number(), 4);
        return len;
    default:
        change_slot(file, len);
        return len;
    }
}

/* Makes what `file` says of itself right, so that what is behind is looked at. */
static void forge(unsigned char *file, size_t len)
{
    put(file, len, 16, len, 8);
    put(file, len, FL_FILE_CHECKSUM_AT, fl_file_checksum(file, len), 8);
}

/* ---- what may come of it ---- */

struct place {
    uint64_t begin, end, birth, death;
};

static unsigned places_of(const struct fl_layout *l, struct place out[static 2 * SLOTS + 2])
{
    unsigned n = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        const struct fl_slot *s = &l->slot[i];
        unsigned places =
            s->kind == FL_SLOT_DOUBLE_BUFFERED ? 2 : s->kind < FL_SLOT_DOUBLE_BUFFERED;
        assert_true(places == 0 || s->align <= FL_GRANULE); /* else it is not served */
        for (unsigned p = 0; p < places; p++) {
            uint64_t bytes = fl_align_up(s->size, FL_GRANULE);
            out[n++] = (struct place){s->offset[p], s->offset[p] + bytes, s->birth, s->death};
        }
    }
    return n;
}

static void check_places(const struct fl_layout *l)
{
    static struct place place[2 * ROOM / SLOT];
    unsigned n = places_of(l, place);

    for (unsigned i = 0; i < n; i++) {
        const struct place *a = &place[i];
        assert_true(a->begin <= a->end && a->end <= l->height && a->begin % FL_GRANULE == 0);
        for (unsigned j = 0; j < i; j++) {
            const struct place *b = &place[j];
            bool together = a->birth < b->death && b->birth < a->death;
            assert_false(together && a->begin < b->end && b->begin < a->end);
        }
    }
}

static void check_entries(const struct fl_layout *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct fl_plan_entry *s = &l->entry[i];
        for (int p = 0; p < 2; p++) {
            bool has_place = s->granule[p] != FL_ENTRY_NONE;
            uint64_t end = s->granule[p] + fl_granules(s->most);
            assert_true(!has_place || end <= l->height >> FL_GRANULE_SHIFT);
            assert_true(s->mask[p] == 0 || (has_place && s->word[p] == s->granule[p] / 64));
            assert_true(s->least <= s->most);
        }
    }
}

static void check_height(const struct fl_layout *l)
{
    uint64_t sum = FL_GRANULE + 2 * FL_PLAN_ZONES * (uint64_t)fl_page.huge;

    for (uint32_t i = 0; i < l->n; i++) {
        sum += 2 * (l->slot[i].size + 2 * (uint64_t)fl_page.huge);
    }
    assert_true(l->n != 0 && l->height != 0 && l->height <= sum);
    assert_true(l->largest <= l->height);
}

static void judge(const unsigned char *file, size_t len)
{
    struct fl_file_plan p;
    int rc = fl_file_check(file, len);

    seen.other += rc == -EINVAL;
    seen.version += rc == -ENOTSUP;
    seen.length += rc == -EMSGSIZE;
    seen.checksum += rc == -EBADMSG;
    seen.content += rc == -EILSEQ;
    assert_true(rc == 0 || rc == -EINVAL || rc == -ENOTSUP || rc == -EMSGSIZE || rc == -EBADMSG ||
                rc == -EILSEQ);
    for (size_t at = 0; rc == 0 && fl_file_next(file, &at, &p) == 0;) {
        assert_true(at + fl_file_cost(p.n) <= len);
        struct fl_layout *l = fl_keep_layout(&p);
        seen.accepted += l != NULL;
        seen.overlapping += l == NULL;
        if (l != NULL) {
            check_places(l);
            check_entries(l);
            check_height(l);
            assert_true((size_t)((char *)(l->slot + l->n) - (char *)l) <=
                        4096 + 4 * fl_file_cost(p.n));
        }
        fl_layout_free(l);
    }
}

/* What cannot be read from there on, ROOM bytes before it can. */
static unsigned char *build_wall(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *p = mmap(NULL, ROOM + WALL, PROT_READ | PROT_WRITE, flags, -1, 0);

    assert_true(p != MAP_FAILED && mprotect(p + ROOM, WALL, PROT_NONE) == 0);
    return p + ROOM;
}

static void a_file_is_refused_or_harmless(void **state)
{
    enum { MEMORY = 16 * FL_MIB };
    size_t mapped;
    (void)state;
    plan_begin(NULL);
    for (unsigned i = 0; i < BASES; i++) {
        make_base(i);
        judge(base[i], base_len[i]);
    }
    assert_true(seen.accepted >= BASES && seen.overlapping == 0 && seen.content == 0);
    seen.accepted = 0;
    unsigned char *wall = build_wall();
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned which = (unsigned)below(BASES), times = 1 + (unsigned)below(3);
        size_t len = base_len[which];
        unsigned char *file = work;
        memcpy(file, base[which], len);
        while (times-- > 0 && len >= HEAD + PLAN + SLOT) {
            len = mutate(file, len);
        }
        if (len >= HEAD && below(8) != 0) {
            forge(file, len &= ~(size_t)7);
        }
        judge(memmove(wall - fl_align_up(len, 8), file, len), len);
        (void)fl_plan_memory(&mapped);
        assert_true(mapped <= MEMORY);
    }
    print_message("%u files: %u layouts taken, %u not; refused: %u no plan file, %u version, "
                  "%u length, %u checksum, %u content\n",
                  (unsigned)ROUNDS, seen.accepted, seen.overlapping, seen.other, seen.version,
                  seen.length, seen.checksum, seen.content);
    /* none of the checks was spared */
    assert_true(seen.accepted > ROUNDS / 100 && seen.overlapping > ROUNDS / 100);
    assert_true(seen.other != 0 && seen.version != 0 && seen.length != 0);
    assert_true(seen.checksum > ROUNDS / 100 && seen.content > ROUNDS / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_refused_or_harmless),
    };

    seed = seed_read();
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
