/* Has a node room for what is to come in? It is looked at now and then, and what came in since is
 * taken off. */
#include "runtime/runtime.h"

static struct {
    size_t left[FL_NODES];          /* bytes that may come in before the next look. Lock: region */
    struct fl_numa_scratch scratch; /* likewise */
    /* The worker's. */
    struct fl_numa_scratch seen_scratch;
    uint64_t seen[FL_NODES];    /* bytes of room when it looked, less what it took */
    uint64_t seen_ns[FL_NODES]; /* monotonic; 0: it did not look yet */
} room;

static uint64_t look_at(unsigned zone, struct fl_numa_scratch *s)
{
    return fl_topology_room(&fl_runtime.numa.topology, (uint64_t)1 << zone, fl_runtime.numa.root,
                            s);
}

void fl_place_look(unsigned zone)
{
    static const uint64_t lasts_ns = 10000000;
    uint64_t now = fl_sys.now_ns();

    if (fl_thread != FL_THREAD_PROGRAM && zone < fl_runtime.numa.topology.count &&
        now - room.seen_ns[zone] >= lasts_ns) {
        room.seen[zone] = look_at(zone, &room.seen_scratch);
        room.seen_ns[zone] = now;
    }
}

/* Lock: region. */
static uint64_t room_of(unsigned zone)
{
    static const uint64_t holds_ns = 1000000000;

    if (fl_thread != FL_THREAD_PROGRAM) { /* held up there, it would hold the lock */
        return fl_sys.now_ns() - room.seen_ns[zone] < holds_ns ? room.seen[zone] : 0;
    }
    fl_lock_permit_calls(true);
    uint64_t bytes = look_at(zone, &room.scratch);
    fl_lock_permit_calls(false);
    return bytes;
}

bool fl_place_has_room(unsigned zone, size_t bytes)
{
    const struct fl_topology *t = &fl_runtime.numa.topology;

    if (zone >= t->count) { /* of several nodes: each may be the one that has to give it */
        for (unsigned i = 0; i < t->count; i++) {
            room.left[i] -= fl_min(room.left[i], bytes);
        }
        return true;
    }
    if (bytes > room.left[zone]) {
        uint64_t most = room_of(zone);
        if (most < bytes) {
            return false;
        }
        room.left[zone] = bytes + (size_t)fl_min((most - bytes) / 4, SIZE_MAX / 4);
        if (fl_thread != FL_THREAD_PROGRAM) {
            room.seen[zone] -= fl_min(room.seen[zone], room.left[zone]);
        }
    }
    room.left[zone] -= bytes;
    return true;
}
