/* The mirror of a context's plan: its host's side is the arena that the blocks of the step are
 * served from, so that what the program mallocs in its steps has a twin.
 *
 * The arena is held where it is (fl_plan_hold), pinned as the region has it, and registered. Inputs
 * are the blocks that were marked (fl_plan_mark_zone): they lie in one zone, which even and odd
 * steps have a place of their own for: these are the slots. A layout that is made anew in the same
 * arena is followed at the next begin; another arena is -ESTALE, for the mirror's maker to
 * make another. */
#include "gpu/mirror/mirror.h"

#include <errno.h>
#include <stdlib.h>

static void let_go(struct fl_gpu_mirror *m)
{
    if (m->plan.inner != NULL) {
        fl_inner_unpin(fl_gpu_host.region, m->plan.inner, m->host.range);
        m->plan.inner = NULL;
    }
    fl_plan_let_go(m->plan.opening);
}

/* By offset. Shell's sort: qsort may allocate. */
static void sort(struct fl_mirror_run *run, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (size_t i = gap; i < n; i++) {
            struct fl_mirror_run r = run[i];
            size_t at = i;

            for (; at >= gap && run[at - gap].offset > r.offset; at -= gap) {
                run[at] = run[at - gap];
            }
            run[at] = r;
        }
    }
}

/* The runs of the slot of even steps; those of odd ones lie alike. */
static void find_runs(struct fl_gpu_mirror *m, const struct fl_plan_layout *l,
                      const struct fl_plan_place *place, struct fl_mirror_run *all)
{
    const struct fl_plan_zone *z = &l->zone[FL_ZONE_INPUT];
    size_t n = 0;

    for (size_t i = 0; i < l->places; i++) {
        if (place[i].zone == FL_ZONE_INPUT && place[i].offset[0] != FL_PACK_NONE) {
            all[n++] = (struct fl_mirror_run){place[i].offset[0] - z->offset[0], place[i].size};
        }
    }
    sort(all, n);
    m->runs = 0;
    for (size_t i = 0; i < n; i++) {
        fl_mirror_add_run(m->run, &m->runs, all[i], m->gap);
    }
}

static bool are_alike(const struct fl_plan_layout *l, const struct fl_plan_place *place)
{
    const struct fl_plan_zone *z = &l->zone[FL_ZONE_INPUT];

    for (size_t i = 0; i < l->places; i++) {
        if (place[i].zone == FL_ZONE_INPUT && place[i].offset[0] != FL_PACK_NONE &&
            place[i].offset[0] - z->offset[0] != place[i].offset[1] - z->offset[1]) {
            return false;
        }
    }
    return true;
}

static int no_layout(int rc)
{
    return fl_gpu_fail(rc, rc == -EBUSY    ? "the plan's context is busy"
                           : rc == -ENOMEM ? "no memory for the plan's arena"
                                           : "the context has no plan yet");
}

/* Zone and runs as `l` says, of which there are `room` places at most. */
static int read_layout(struct fl_gpu_mirror *m, struct fl_plan_layout *l,
                       struct fl_plan_place *place, struct fl_mirror_run *all, size_t room)
{
    const struct fl_plan_zone *z = &l->zone[FL_ZONE_INPUT];
    int rc = fl_mirror_make_room(m, room);

    m->plan.generation = 0; /* its runs may be gone, and be those of no layout if this fails */
    if (rc == 0 && (rc = fl_plan_layout(m->plan.context, l, place, room)) != 0) {
        return no_layout(rc);
    }
    if (rc == 0 && l->places > room) { /* the worker was quicker */
        rc = fl_gpu_fail(-EBUSY, "the plan is changing");
    }
    if (rc != 0) {
        return rc;
    }
    m->slots = FL_MIRROR_SLOTS;
    m->slot_at[0] = z->offset[0];
    m->slot_at[1] = z->offset[1];
    m->zone = z->len;
    if (are_alike(l, place)) {
        find_runs(m, l, place, all);
    } else { /* all of it, then */
        m->runs = 0;
        fl_mirror_add_run(m->run, &m->runs, (struct fl_mirror_run){0, z->len}, 0);
    }
    fl_assert(m->runs <= m->room);
    m->plan.generation = l->generation;
    return 0;
}

static int take_over(struct fl_gpu_mirror *m, struct fl_plan_layout *l)
{
    size_t room = l->places + 1;
    struct fl_plan_place *place = calloc(room, sizeof *place);
    struct fl_mirror_run *all = calloc(room, sizeof *all);
    int rc = -ENOMEM;

    if (place != NULL && all != NULL) {
        rc = read_layout(m, l, place, all, room);
    } else {
        (void)fl_gpu_fail(rc, "no memory for a record");
    }
    free(place);
    free(all);
    return rc;
}

int fl_follow(struct fl_gpu_mirror *m)
{
    struct fl_plan_layout l;
    int rc = fl_plan_layout(m->plan.context, &l, NULL, 0);

    if (rc != 0) {
        return no_layout(rc);
    }
    if (l.opening != m->plan.opening) {
        return fl_gpu_fail(-ESTALE, "the plan has another arena: make another mirror");
    }
    if (l.generation != m->plan.generation && (rc = take_over(m, &l)) != 0) {
        return rc;
    }
    for (unsigned i = 0; i < m->slots; i++) {
        if (m->slot_at[i] + m->zone > m->host.range.len) { /* it was raised since */
            return fl_gpu_fail(-ESTALE, "the plan is larger than the mirror: make another");
        }
    }
    m->slot = l.parity;
    fl_assert(m->slot < m->slots);
    return 0;
}

static int pin_arena(struct fl_gpu_mirror *m, struct fl_range range, const struct fl_pin *how)
{
    struct fl_extent *outer;
    struct fl_inner *in = fl_inner_around(&fl_gpu_host.region->space, range.base, &outer);
    int rc = in != NULL ? fl_inner_pin(fl_gpu_host.region, in, range, how) : -EINVAL;

    fl_assert(m->plan.inner == NULL);
    if (rc != 0) {
        return fl_gpu_fail(rc, rc == -EBUSY ? "the plan has a mirror already"
                                            : "the plan's arena cannot be pinned");
    }
    m->plan.inner = in;
    m->host.range = range;
    return 0;
}

int fl_follow_take(struct fl_gpu_mirror *m, const struct fl_pin *how)
{
    struct fl_plan_layout l;
    struct fl_pin pin = *how;

    if (fl_gpu_region() == NULL) {
        return fl_gpu_fail(-ENOTSUP, "the process is not served: it has no plans");
    }
    pin.node = -1; /* it lies where the plan has it */
    int rc = fl_plan_hold(m->plan.context, &l);
    if (rc != 0) {
        return no_layout(rc);
    }
    struct fl_range range = {l.base, l.limit};
    m->plan.opening = l.opening;
    rc = pin_arena(m, range, &pin);
    rc = rc == 0 ? take_over(m, &l) : rc;
    if (rc != 0) {
        let_go(m);
        return rc;
    }
    (void)fl_pinned_borrow(&m->host, range, m->gpu);
    if (m->host.range.len == 0) { /* it is registered in part, and stays so */
        return -EIO;
    }
    return 0;
}

int fl_follow_give(struct fl_gpu_mirror *m)
{
    struct fl_range range = m->host.range;
    int rc = fl_pinned_give(&m->host);

    if (rc == 0) { /* else its pages are pinned still: it stays where it is for good */
        m->host.range = range;
        let_go(m);
    }
    return rc;
}

int fl_gpu_mirror_input(const void *block)
{
    int rc = fl_gpu_region() != NULL ? fl_plan_mark_zone(block, FL_ZONE_INPUT) : -ENOENT;

    return rc != 0 ? fl_gpu_fail(rc, "not a block of a step of the calling thread's") : 0;
}
