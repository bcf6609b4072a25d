/* First touches: requests to the worker, to arm and disarm ranges. Included by region.h. */
#ifndef FL_REGION_TOUCH_H
#define FL_REGION_TOUCH_H

#include "core/core.h"

struct fl_region;
struct fl_extent;

enum { FL_TOUCH_SLOTS = 8 };
enum fl_touch_state {
    FL_TOUCH_FREE,
    FL_TOUCH_TAKEN,
    FL_TOUCH_ASKED,
    FL_TOUCH_SERVED,
    FL_TOUCH_DONE,
    FL_TOUCH_LEFT /* its asker did not wait so long */
};
struct fl_touch {
    _Atomic bool open;  /* the worker serves first touches */
    void (*call)(void); /* plugged in by runtime/: wakes the worker. Signal-safe */
    struct fl_touch_slot {
        _Atomic uint32_t state; /* enum fl_touch_state; also the futex that the asker waits on */
        struct fl_range range;
        bool on; /* to be armed, or disarmed */
        int rc;
    } slot[FL_TOUCH_SLOTS];
};

/* Is a request of `len` to be populated by its first touches? */
bool fl_touch_wants(const struct fl_region *r, size_t len);
/* `e` is LIVE and LAZY. disarm: false when it may still be armed. No lock held; both wait for
 * the worker, but not for long. */
void fl_touch_arm(struct fl_region *r, struct fl_extent *e);
bool fl_touch_disarm(struct fl_region *r, struct fl_extent *e);

#endif
