/* What ages goes back to the kernel: by the worker's clock, by that of requests and frees where
 * there is no worker, and at once. */
#include "prop/advised.h"
#include "prop/ops_kinds.h"
#include "prop/world.h"
#include "region/state/counts.h"
#include "unit/fake_sys.h"

enum {
    IDLE_TICKS = FL_DECAY_TICKS + 1,
    IDLE_ALONE = 40, /* each gives back a part */
};

/* Nothing is left that could age, and the next free tells. */
static const char *check_all_aged(void)
{
    const char *wrong = world_check_aged(0);

    MUST(wrong == NULL, wrong);
    MUST(region.wants_worker, "nothing ages, and no free will tell that there is some again");
    return NULL;
}

static const char *tick(void)
{
    uint32_t before = region.epoch;
    bool more = fl_region_tick(&region, FL_DECAY_TICKS);

    MUST(region.epoch == before + 1, "a tick makes nothing older");
    const char *wrong = world_check_aged(FL_DECAY_TICKS);
    MUST(wrong == NULL, wrong);
    return more ? holes_check(&region) : check_all_aged();
}

static void wait_alone(uint64_t ns)
{
    fake.now_ns += ns;
    fl_region_age_alone(&region);
}

const char *op_tick(const struct op *op)
{
    (void)op;
    if (!world.config->alone) {
        return tick();
    }
    wait_alone(OPS_TICK_NS);
    return holes_check(&region);
}

const char *op_wait(const struct op *op)
{
    fake.now_ns += op->a % 8 * (OPS_TICK_NS / 4);
    return NULL;
}

const char *op_idle(const struct op *op)
{
    (void)op;
    if (world.config->alone) {
        for (int i = 0; i < IDLE_ALONE; i++) {
            wait_alone(OPS_TICK_NS);
        }
        return world_check_aged(0);
    }
    for (int i = 0; i < IDLE_TICKS; i++) {
        const char *wrong = tick();
        MUST(wrong == NULL, wrong);
    }
    return world_check_aged(0);
}

const char *op_purge(const struct op *op)
{
    uint32_t age = op->a % 6;

    (void)fl_region_purge(&region, age);
    const char *wrong = world_check_aged(age);
    return wrong != NULL ? wrong : holes_check(&region);
}

/* Bytes of free memory that is there. */
static size_t free_bytes(void)
{
    return fl_region_free(&region).bytes + region.pages.reserve.held;
}

static const char *trim(size_t pad)
{
    size_t before = free_bytes();

    (void)fl_region_trim(&region, pad);
    return free_bytes() + fl_page.huge >= fl_min(before, pad) ? NULL
                                                              : "a trim took what was to stay";
}

const char *op_give_back(const struct op *op)
{
    switch (op->a % 3) {
    case 0:
        return trim((size_t)(op->b % 64) << 19);
    case 1:
        fl_region_release(&region);
        return world_check_aged(0);
    default:
        (void)fl_region_clear_out(&region);
        return world_check_aged(0);
    }
}
