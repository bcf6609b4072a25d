/* What the pools and mirrors of a device hold of its memory together, and how much they may. A
 * device's handles share one account. Lock: `lock`, rank RUNTIME; no driver call is made under it,
 * and no other lock of the folder is held when it is taken. */
#include "gpu/driver/driver.h"

#include <errno.h>

enum { HUGE = 2 * FL_MIB, GRAIN = 512 /* of what the driver takes */ };

size_t fl_gpu_cost(size_t len)
{
    return len >= HUGE / 2 && len <= SIZE_MAX - HUGE ? fl_align_up(len, HUGE) : len;
}

static size_t booked(size_t len)
{
    return len <= SIZE_MAX - HUGE ? fl_align_up(fl_gpu_cost(len), GRAIN) : len;
}

static struct fl_lock lock;
static struct account {
    size_t held, peak;
    size_t limit, bound; /* the least of what joined; what was said. 0: none */
    unsigned users;
} accounts[FL_GPU_DEVICES];

static struct account *account_of(const struct fl_gpu *gpu)
{
    return &accounts[fl_min((size_t)gpu->ordinal, FL_GPU_DEVICES - 1)];
}

void fl_gpu_account_join(const struct fl_gpu *gpu, size_t limit)
{
    struct account *a = account_of(gpu);

    fl_lock_acquire(&lock);
    a->users++;
    if (limit != 0 && (a->limit == 0 || limit < a->limit)) {
        a->limit = limit;
    }
    fl_lock_release(&lock);
}

void fl_gpu_account_leave(const struct fl_gpu *gpu)
{
    struct account *a = account_of(gpu);

    fl_lock_acquire(&lock);
    fl_assert(a->users != 0);
    if (--a->users == 0) { /* what the driver would not take back is no pool's any more */
        *a = (struct account){.peak = a->peak, .bound = a->bound};
    }
    fl_lock_release(&lock);
}

/* SIZE_MAX: there is none. Lock: held. */
static size_t limit_of(const struct account *a)
{
    fl_assert(fl_lock_is_held(FL_RANK_RUNTIME, 1));
    return fl_min(a->limit != 0 ? a->limit : SIZE_MAX, a->bound != 0 ? a->bound : SIZE_MAX);
}

void fl_gpu_account_bound(const struct fl_gpu *gpu, size_t limit)
{
    fl_lock_acquire(&lock);
    account_of(gpu)->bound = limit;
    fl_lock_release(&lock);
}

size_t fl_gpu_account_room(const struct fl_gpu *gpu)
{
    const struct account *a = account_of(gpu);

    fl_lock_acquire(&lock);
    size_t limit = limit_of(a), room = limit - fl_min(a->held, limit);
    fl_lock_release(&lock);
    if (limit == SIZE_MAX) {
        return SIZE_MAX;
    }
    return fl_align_down(room < HUGE ? fl_min(room, HUGE / 2 - 1) : room,
                         room < HUGE ? GRAIN : HUGE);
}

int fl_gpu_account_take(const struct fl_gpu *gpu, size_t len)
{
    struct account *a = account_of(gpu);

    fl_lock_acquire(&lock);
    size_t limit = limit_of(a);
    bool right = a->held <= limit && booked(len) <= limit - a->held;
    a->held += right ? booked(len) : 0;
    a->peak = fl_max(a->peak, a->held);
    fl_assert(!right || (a->held <= limit && a->held <= a->peak));
    fl_lock_release(&lock);
    return right ? 0 : fl_gpu_fail(-ENOMEM, "the device's limit is reached");
}

void fl_gpu_account_give(const struct fl_gpu *gpu, size_t len)
{
    struct account *a = account_of(gpu);

    fl_lock_acquire(&lock);
    a->held -= fl_min(booked(len), a->held);
    fl_lock_release(&lock);
}

bool fl_gpu_account_read(int device, bool soon, struct fl_stats_gpu *out)
{
    const struct account *a = &accounts[device];

    if (!soon) {
        fl_lock_acquire(&lock);
    } else if (!fl_lock_acquire_soon(&lock)) {
        return false;
    }
    out->held_bytes = a->held;
    out->held_peak_bytes = a->peak;
    out->limit_bytes = limit_of(a) != SIZE_MAX ? limit_of(a) : 0;
    fl_lock_release(&lock);
    return true;
}
