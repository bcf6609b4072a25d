/* What a context knows of the layouts it serves from. All of it is the context's thread's. */
#ifndef FL_PLAN_SERVE_SERVE_H
#define FL_PLAN_SERVE_SERVE_H

#include "plan/serve/arena.h"
#include "plan/serve/layout.h"

enum { FL_LAYOUTS = 4 }; /* of a context: README.md, Constants */
/* Steps in a row after which a plan was good, and a thread that is elsewhere has moved for good. */
enum { FL_LONG_SERVICE = 64 };

/* The step under way. */
struct fl_step_figures {
    uint64_t asked, missed; /* bytes */
    uint64_t exempt;        /* of these: what a change of phase was recognised by */
    uint64_t unknown;       /* of the last requests in a row that no entry stands for, */
    const struct fl_plan_entry *unknown_at; /* where this was expected */
    uint32_t requests;                      /* in this step, or since the last boundary */
    uint32_t mismatched;                    /* of these, those that were not where the plan says */
    uint32_t displaced;                     /* of these, those whose place was another block's */
    size_t moved;                           /* of the arena, when the step began */
    bool opened;                            /* the arena is new in this step */
    bool begun_alike;                       /* its first requests were those of the layout */
};

struct fl_serve {
    struct fl_cursor cursor;
    const struct fl_plan_entry *end;     /* of the layout */
    const struct fl_plan_entry *counted; /* before it, all is in the figures; see fl_replay_count */
    struct fl_arena *arena;              /* NULL: none */
    struct fl_layout *layout;            /* the one that is served now; NULL: none */
    struct fl_layout *known[FL_LAYOUTS];
    struct fl_layout *last; /* of the step before */
    struct fl_step_figures step;
    uint64_t recent[FL_SIGNATURE]; /* sizes of the last requests */
    unsigned served;               /* steps in a row, since a plan was taken up */
    unsigned mismatched_steps;     /* in a row that nearly nothing of was known */
    uint8_t bad;                   /* a bit for each of the last eight steps: see fl_replay_end */
    bool ready; /* its arena has what all known layouts need; false: that is to be looked at */
};

/* Why a plan is served no more. */
enum fl_end {
    FL_END_NOT,        /* it is */
    FL_END_BAD,        /* its steps miss too much */
    FL_END_MOVES,      /* memory moves for it, from its first steps on */
    FL_END_MISMATCHED, /* nearly nothing of its steps is known: it may be right for others */
    FL_END_NO_MEMORY,
    FL_END_FORKED, /* its memory is not in the child */
    FL_ENDS
};

struct fl_step_context;

/* No layout is served. A handler may see to that after the thread has read its cursor: what it
 * looks at then is an entry that nothing fits. */
void fl_replay_go_nowhere(struct fl_step_context *c);
/* Prepares the arena, and the replay cursor. False: no memory for it. */
bool fl_replay_begin(struct fl_step_context *c);
/* Brings the figures up to date: fl_plan_take_next keeps none. */
void fl_replay_count(struct fl_step_context *c);
/* Judges the step, and the plan by its last ones. */
enum fl_end fl_replay_end(struct fl_step_context *c, bool beside);
/* The layout's first requests have been served already: those that it was recognised by. */
void fl_replay_resume(struct fl_step_context *c);
/* The thread has moved to another node for good: another arena would do better. */
bool fl_replay_is_away(struct fl_step_context *c);
/* No layout is served any more; idle pages of the arena are the region's. */
void fl_replay_off(struct fl_step_context *c);
/* Of the last FL_SIGNATURE requests, as in fl_layout.begins; 0: there were not as many. */
uint64_t fl_replay_recent(const struct fl_step_context *c);
/* The layout whose first requests were the last ones, but `but`; NULL. */
struct fl_layout *fl_replay_recognise(const struct fl_step_context *c, const struct fl_layout *but);
/* Its arena is open, and holds every layout it knows. False: no memory for it, and no layout is
 * served. */
bool fl_serve_open_arena(struct fl_step_context *c);
/* Without an arena from here on. */
void fl_serve_let_go(struct fl_step_context *c);

#endif
