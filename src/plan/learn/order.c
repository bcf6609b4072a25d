/* The order of events in recorded steps, made one order.
 *
 * Every step has its own. A step's order is laid along the newest one's by a map that keeps it: a
 * place for each event, none before that of an earlier event. A slot is then born at the earliest
 * place that any step's map has for its birth, and dies after the latest for its death: whatever
 * map, what lived at once in that step does so in the result. */
#include "plan/learn/merge.h"

struct order {
    uint64_t *key; /* of each event: twice the lifetime or slot, one more for a birth */
    uint32_t *id;
    size_t n;
    struct fl_bump room;
};

static struct order begin(struct fl_bump room, size_t most)
{
    struct order o = {.n = 0};

    o.key = fl_bump_carve(&room, 2 * most, sizeof *o.key);
    o.id = fl_bump_carve(&room, 2 * most, sizeof *o.id);
    o.room = room;
    return o;
}

size_t fl_order_scratch(size_t most)
{
    return fl_bump_cost(2 * most, sizeof(uint64_t)) + 3 * fl_bump_cost(2 * most, sizeof(uint32_t)) +
           fl_sort_cost(2 * most);
}

static void add(struct order *o, size_t id, uint64_t key)
{
    o->key[id] = key;
    o->id[o->n++] = (uint32_t)id;
}

/* Deaths come before births of the same time, but not before their own. */
static void add_birth(struct order *o, size_t i, const struct fl_lives *s, const struct fl_life *l)
{
    add(o, 2 * i + 1, (l->birth - s->begin) * 4 + 1);
}

static void add_death(struct order *o, size_t i, const struct fl_lives *s, const struct fl_life *l)
{
    add(o, 2 * i, (l->death - s->begin) * 4 + (l->death == l->birth ? 2 : 0));
}

static void sort(struct order *o)
{
    (void)fl_sort(o->id, o->key, o->n, o->room);
}

uint64_t fl_order_newest(const struct fl_lives *newest, struct fl_slot *slot, struct fl_bump room)
{
    struct order o = begin(room, newest->n);

    for (size_t i = 0; i < newest->n; i++) {
        const struct fl_life *l = &newest->life[i];
        add_birth(&o, i, newest, l);
        if (l->death <= newest->end) {
            add_death(&o, i, newest, l);
        }
    }
    sort(&o);
    for (size_t i = 0; i < newest->n; i++) {
        slot[i].death = o.n;
    }
    for (size_t i = 0; i < o.n; i++) {
        struct fl_slot *s = &slot[o.id[i] / 2];
        *(o.id[i] % 2 != 0 ? &s->birth : &s->death) = i;
    }
    return o.n;
}

/* Of each event two places that a map may have for it: the latest birth up to it, which moves no
 * birth, and the earliest death from it on, which moves no death. */
struct places {
    uint32_t *late, *early;
};

static void find_places(const struct order *o, const struct fl_slot *slot, struct places p)
{
    uint64_t late = 0, early = UINT32_MAX;

    for (size_t i = 0; i < o->n; i++) {
        late = o->id[i] % 2 != 0 ? fl_max(late, slot[o->id[i] / 2].birth) : late;
        p.late[i] = (uint32_t)late;
    }
    for (size_t i = o->n; i-- > 0;) {
        early = o->id[i] % 2 == 0 ? fl_min(early, slot[o->id[i] / 2].death - 1) : early;
        p.early[i] = (uint32_t)early;
    }
}

/* What it adds, in bytes times places, if events [from, to) come to `place`; adds it if `done`. */
static double lengthen(const struct order *o, struct fl_slot *slot, const uint32_t *place,
                       size_t from, size_t to, bool done)
{
    double cost = 0;

    for (size_t i = from; i < to; i++) {
        struct fl_slot *s = &slot[o->id[i] / 2];
        uint64_t birth = o->id[i] % 2 != 0 ? fl_min(s->birth, place[i]) : s->birth;
        uint64_t death = o->id[i] % 2 == 0 ? fl_max(s->death, place[i] + 1) : s->death;
        cost += (double)(s->birth - birth + death - s->death) * (double)s->size;
        s->birth = done ? birth : s->birth;
        s->death = done ? death : s->death;
    }
    return cost;
}

/* Where an event's late place is not after its early one, nothing gets longer. Each run of other
 * events takes all late places or all early ones, whichever cost less. */
void fl_order_cover(const struct fl_lives *step, const uint32_t *match, struct fl_slot *slot,
                    size_t n, struct fl_bump room)
{
    struct order o = begin(room, n);
    struct places p = {.late = fl_bump_carve(&o.room, 2 * n, sizeof *p.late)};

    p.early = fl_bump_carve(&o.room, 2 * n, sizeof *p.early);
    for (size_t i = 0; i < n; i++) {
        if (slot[i].kind == FL_SLOT_PLANNED && match[i] != FL_MERGE_NONE) {
            add_birth(&o, i, step, &step->life[match[i]]);
            add_death(&o, i, step, &step->life[match[i]]);
        }
    }
    sort(&o);
    find_places(&o, slot, p);
    for (size_t from = 0, to; from < o.n; from = fl_max(to, from + 1)) {
        for (to = from; to < o.n && p.late[to] > p.early[to]; to++) {
        }
        double late = lengthen(&o, slot, p.late, from, to, false);
        double early = lengthen(&o, slot, p.early, from, to, false);
        (void)lengthen(&o, slot, late < early ? p.late : p.early, from, to, true);
    }
}

uint64_t fl_order_peak(const struct fl_lives *step, const struct fl_slot *size, struct fl_bump room)
{
    struct order o = begin(room, step->n);
    uint64_t live = 0, peak;

    for (size_t i = 0; i < step->n; i++) {
        const struct fl_life *l = &step->life[i];
        if (l->death == FL_LIFE_NEVER) {
            continue;
        }
        add_birth(&o, i, step, l);
        if (l->death <= step->end) {
            add_death(&o, i, step, l);
        } else { /* the one of the step before is here until then */
            add(&o, 2 * i, fl_min(l->death - step->end, step->end - step->begin) * 4);
            live += size != NULL ? size[i].size : l->size;
        }
    }
    sort(&o);
    peak = live;
    for (size_t i = 0; i < o.n; i++) {
        uint32_t id = o.id[i] / 2;
        uint64_t bytes = size != NULL ? size[id].size : step->life[id].size;
        live = o.id[i] % 2 != 0 ? live + bytes : live - bytes;
        peak = fl_max(peak, live);
    }
    return peak;
}
