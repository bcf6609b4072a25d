/* What memory there is, and what the kernel says to who asks for some. */
#include "prop/ops_kinds.h"
#include "prop/world.h"
#include "region/state/counts.h"
#include "unit/fake_sys.h"

#include <errno.h>

const char *op_limit(const struct op *op)
{
    static const size_t limits[] = {0, MIB(32), MIB(96)};
    size_t limit = limits[op->a % 3];

    fl_region_set_limit(&region, limit);
    MUST(limit == 0 || fl_region_counted(&region) <= limit || fl_region_free(&region).huge == 0,
         "free memory is held beyond the limit");
    return NULL;
}

const char *op_refuse(const struct op *op)
{
    fake.commit_max = op->a % 3 == 0 ? op->a % 16 * KIB(512) : SIZE_MAX;
    return NULL;
}

/* A small memory cgroup with room in it, or none. */
static void confine(bool small)
{
    fake_file("/proc/self/cgroup", "0::/job\n");
    fake_file("/sys/fs/cgroup/job/memory.max", small ? "402653184\n" : "max\n");
    fake_file("/sys/fs/cgroup/job/memory.current", "104857600\n");
}

/* Plenty is left, half of the machine is used, or next to nothing is left. The next free looks. */
const char *op_press(const struct op *op)
{
    static const char *const left[] = {
        "MemTotal: 16777216 kB\nMemAvailable: 14680064 kB\n",
        "MemTotal: 16777216 kB\nMemAvailable: 8396800 kB\n",
        "MemTotal: 16777216 kB\nMemAvailable: 65536 kB\n",
    };

    fake_file("/proc/meminfo", left[op->a % 6 < 4 ? 0 : op->a % 6 - 3]);
    confine(op->a % 16 == 8);
    fake.limit_as = op->b % 4 == 0 ? MIB(128) : UINT64_MAX;
    region.pressure.since_look = region.pressure.look_after;
    region.budget.left = 0;
    return NULL;
}

/* Each move another answer; so much may move before it. */
static int answer_at_random(struct fl_range from, uintptr_t to, size_t *most)
{
    static const int answers[] = {0, 0, -EBUSY, -EAGAIN, -EEXIST, -EINVAL, -ENOMEM, -EFAULT};
    uint64_t dice = world.dice * 6364136223846793005u + 1442695040888963407u;

    (void)to;
    world.dice = dice;
    if ((dice >> 40) % 2 == 0) {
        *most = fl_min(from.len, (dice >> 20) % (from.len >> fl_page.shift) << fl_page.shift);
    }
    return answers[(dice >> 33) % 8];
}

/* One of the next calls of some kind is refused. */
static void refuse_one(unsigned which)
{
    static const unsigned kinds[] = {
        1u << FAKE_ADVISE, /* which may be about fork */
        1u << FAKE_POPULATE,
        1u << FAKE_MAP_AT | 1u << FAKE_COMMIT,
    };

    fake.fail_at = 0;
    if (which % 8 < 3) {
        fake_fail_at(1 + which / 8 % 8, kinds[which % 8]);
    }
}

const char *op_answer(const struct op *op)
{
    fake.on_move = op->a % 8 < 3 ? answer_at_random : NULL;
    fake.rc[FAKE_MOVE] = op->a % 8 == 3 ? -EBUSY : 0;
    fake.rc[FAKE_MOVE_BEGIN] = op->a % 8 == 4 ? (op->a % 512 == 4 ? -EPERM : -EMFILE) : 0;
    fake.holes |= fake.rc[FAKE_MOVE_BEGIN] == -EPERM; /* from then on mremap moves: world.c */
    fake.move_most = op->b % 4 == 0 ? fl_align_up(KIB(4) * (1 + op->b % 700), fl_page.base) : 0;
    refuse_one(op->b);
    return NULL;
}
