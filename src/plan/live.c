/* Where the planner's figures lie. Contexts and arenas are type-stable, so they may be read without
 * the lock; the bits of an arena that grows may be gone, and then that figure is not known. */
#include "plan/context.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define COUNTER(what, of)                                                                          \
    {                                                                                              \
        FL_LIVE_WORD(what, struct fl_step_context, stats.of)                                       \
    }

static void add_contexts(struct fl_live_page *p)
{
    static const struct fl_live_term term[] = {
        COUNTER(FL_LIVE_REQUESTS, hits),
        COUNTER(FL_LIVE_PLAN_HITS, hits),
        COUNTER(FL_LIVE_SERVED_BYTES, hit_bytes),
        COUNTER(FL_LIVE_PLAN_MISSES, misses),
        COUNTER(FL_LIVE_PLAN_STEPS, steps),
        COUNTER(FL_LIVE_PLAN_LAYOUTS, layouts),
        COUNTER(FL_LIVE_PLAN_DROPS, drops),
        {FL_LIVE_WORD(FL_LIVE_STATE, struct fl_step_context, state), .how = FL_LIVE_TALLY,
         .when = offsetof(struct fl_step_context, who.open), .when_width = sizeof(bool)},
    };
    enum { FROM = offsetof(struct fl_step_context, state) };
    _Static_assert(FL_REST + 1 == FL_LIVE_STATES, "the page has a figure for each state");

    fl_live_add(p,
                (struct fl_live_list){.at = fl_live_at(fl_plan.context),
                                      .count = fl_live_at(&fl_plan.ncontexts),
                                      .from = FROM,
                                      .size = sizeof(struct fl_step_context) - FROM,
                                      .shape = FL_LIVE_TABLE},
                term, COUNT(term));
}

/* While the arena is open: what of it is held, and what of that blocks have. */
#define OPEN                                                                                       \
    .when = offsetof(struct fl_arena, height), .when_width = sizeof(((struct fl_arena *)0)->height)
#define BITS(what, word_of, number)                                                                \
    FL_LIVE_WORD(what, struct fl_arena, word_of), .how = FL_LIVE_BITS, .shift = FL_GRANULE_SHIFT,  \
                                                  .bits = offsetof(struct fl_arena, number), OPEN

static void add_arenas(struct fl_live_page *p)
{
    static const struct fl_live_term term[] = {
        {.figure = FL_LIVE_REQUESTS, .how = FL_LIVE_ONE, .subtracts = 1, OPEN}, /* no place's */
        {FL_LIVE_WORD(FL_LIVE_RESERVE_BYTES, struct fl_arena, height)},
        {BITS(FL_LIVE_RESERVE_BYTES, absent.word, absent.granules), .subtracts = 1},
        {BITS(FL_LIVE_RESERVE_BYTES, claimed.word, claimed.granules), .subtracts = 1},
        {FL_LIVE_WORD(FL_LIVE_LIVE_BYTES, struct fl_arena, height), .subtracts = 1},
        {BITS(FL_LIVE_LIVE_BYTES, absent.word, absent.granules)},
        {BITS(FL_LIVE_LIVE_BYTES, claimed.word, claimed.granules)},
    };

    fl_live_add(p,
                (struct fl_live_list){.at = fl_live_at(&fl_plan.arenas),
                                      .size = sizeof(struct fl_arena),
                                      .shape = FL_LIVE_CHAIN,
                                      .next = offsetof(struct fl_arena, next)},
                term, COUNT(term));
}

void fl_plan_live(struct fl_live_page *p)
{
    add_contexts(p);
    add_arenas(p);
}
