/* Mirrors of a plan: which layouts are followed, what of them is copied, when the arena is held.
 * What the layers below say of the plan is scripted: --wrap in mirrors.cmake. */
#include "gpu/mirror_fixture.h"

enum { INPUTS = 3, ARENA = 8 << 20, ZONE = 1 << 20, PIECE = 4 << 10 };

static _Alignas(2 << 20) unsigned char arena[ARENA];
static struct fl_region region; /* nothing is asked of it */
static struct fl_plan_layout layout;
static struct fl_plan_place place[INPUTS];
static size_t more; /* places, of which a reading finds so many more than it has room for */
static int held, pinned, refusal;

int scripted_layout(struct fl_step_context *c, struct fl_plan_layout *out, struct fl_plan_place *to,
                    size_t room) __asm__("__wrap_fl_plan_layout");
int scripted_hold(struct fl_step_context *c,
                  struct fl_plan_layout *out) __asm__("__wrap_fl_plan_hold");
void scripted_let_go(uint64_t opening) __asm__("__wrap_fl_plan_let_go");
struct fl_inner *scripted_around(struct fl_space *s, uintptr_t addr,
                                 struct fl_extent **outer) __asm__("__wrap_fl_inner_around");
int scripted_pin(struct fl_region *r, struct fl_inner *in, struct fl_range part,
                 const struct fl_pin *how) __asm__("__wrap_fl_inner_pin");
void scripted_unpin(struct fl_region *r, struct fl_inner *in,
                    struct fl_range part) __asm__("__wrap_fl_inner_unpin");

int scripted_layout(struct fl_step_context *c, struct fl_plan_layout *out, struct fl_plan_place *to,
                    size_t room)
{
    (void)c;
    *out = layout;
    out->places += to == NULL ? more : 2 * more;
    if (to != NULL) {
        memcpy(to, place, fl_min(room, INPUTS) * sizeof *to);
    }
    return 0;
}

int scripted_hold(struct fl_step_context *c, struct fl_plan_layout *out)
{
    held++;
    return scripted_layout(c, out, NULL, 0);
}

void scripted_let_go(uint64_t opening)
{
    held -= opening == layout.opening;
}

struct fl_inner *scripted_around(struct fl_space *s, uintptr_t addr, struct fl_extent **outer)
{
    (void)s;
    *outer = NULL;
    return (struct fl_inner *)addr; /* NOLINT(performance-no-int-to-ptr): not looked into */
}

int scripted_pin(struct fl_region *r, struct fl_inner *in, struct fl_range part,
                 const struct fl_pin *how)
{
    (void)r, (void)in, (void)part, (void)how;
    pinned += refusal == 0;
    return refusal;
}

void scripted_unpin(struct fl_region *r, struct fl_inner *in, struct fl_range part)
{
    (void)r, (void)in, (void)part;
    pinned--;
}

static void script(void)
{
    static const size_t at[INPUTS] = {KIB(512) + PIECE, KIB(64), KIB(512)};

    layout = (struct fl_plan_layout){.generation = 1,
                                     .opening = 1,
                                     .base = (uintptr_t)arena,
                                     .limit = ARENA,
                                     .places = INPUTS,
                                     .zone[FL_ZONE_INPUT] = {{0, ZONE}, ZONE}};
    for (size_t i = 0; i < INPUTS; i++) {
        place[i] = (struct fl_plan_place){{at[i], ZONE + at[i]}, PIECE, FL_ZONE_INPUT};
    }
    more = 0;
    refusal = 0;
}

static int make(struct fl_gpu_mirror **out)
{
    struct fl_gpu_mirror_options o;

    fl_gpu_mirror_defaults(&o);
    o.context = (struct fl_step_context *)&layout; /* a name */
    o.coalesce_gap = 0;
    return fl_gpu_mirror_create(gpu, &o, out);
}

/* A step: its slot, all of which is written; so many copies bring its inputs over. */
static void step(struct fl_gpu_mirror *m, uint64_t copies)
{
    static unsigned char value;
    unsigned odd = layout.parity;
    uint64_t before = fake->copies();
    unsigned char *base = mirror_begin(m);

    assert_ptr_equal(base, arena + layout.zone[FL_ZONE_INPUT].offset[odd]);
    mirror_write(base, ZONE, ++value);
    assert_ok(fl_gpu_mirror_push(m, NULL));
    assert_int_equal(fake->copies() - before, copies);
    for (size_t i = 0; i < INPUTS; i++) {
        assert_true(fake->holds(mirror_twin(m, place[i].offset[odd]), PIECE, value));
    }
}

CASE(layouts_are_followed)
{
    struct fl_gpu_mirror *m = NULL;
    void *base;

    script();
    assert_ok(make(&m));
    step(m, 2); /* two of them touch */
    layout.parity = 1;
    step(m, 2);
    place[1].offset[1] += KIB(64); /* not as in even steps: all of the zone is copied */
    layout.generation = 2;
    step(m, 1);
    layout.opening = 2;
    assert_int_equal(fl_gpu_mirror_begin(m, &base), -ESTALE);
    layout.opening = 1;
    layout.generation = 3;
    layout.zone[FL_ZONE_INPUT].offset[1] = ARENA - ZONE / 2;
    assert_int_equal(fl_gpu_mirror_begin(m, &base), -ESTALE);
    script();
    step(m, 2);
    layout.generation = 4;
    more = 10; /* the worker is quicker; then the layout before is back */
    assert_int_equal(fl_gpu_mirror_begin(m, &base), -EBUSY);
    script();
    step(m, 2);
    mirror_end(m);
    assert_int_equal(held, 0);
    assert_int_equal(pinned, 0);
}

CASE(an_arena_is_held_by_a_mirror_alone)
{
    struct fl_gpu_mirror *m = NULL;

    script();
    refusal = -EBUSY;
    assert_int_equal(make(&m), -EBUSY);
    refusal = 0;
    more = 10;
    assert_int_equal(make(&m), -EBUSY);
    assert_int_equal(held, 0);
    assert_int_equal(pinned, 0);
    more = 0;
    assert_ok(make(&m));
    fake->refuse("cuMemHostUnregister", 1, FL_CUDA_ERROR_UNKNOWN, false);
    assert_int_equal(fl_gpu_mirror_destroy(m), -EIO);
    assert_int_equal(held, 1); /* it is registered still */
    assert_int_equal(pinned, 1);
    assert_int_equal(fl_cuda.cuMemHostUnregister(arena), 0);
}

int main(void)
{
    gpu_main("test_gpu_mirror_plan", &region);
    return RUN_CASES(GPU_CASES);
}
