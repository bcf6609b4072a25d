/* Places for threads, of which a user (RLIMIT_NPROC) or a control group (pids.max) may have so many
 * and no more: a program that is given a small number fills it, and a thread of the library's must
 * not have the last one.
 *
 * The library's threads are refused nothing then: they are not started. What the program itself is
 * refused has them end (preload/places.c); this look is for others, which share the limit and of
 * whose refusals this process does not hear. The kernel tells how many a group has; of a user it
 * does not. Sources: getrlimit(2), user_namespaces(7); the kernel's admin-guide/cgroup-v2
 * (pids.max, pids.current), kernel/fork.c. */
#include "sys/groups.h"
#include "sys/internal.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    SMALL = 256,
    SHARE_LEFT = 8
}; /* below: small. Of a limit, what others find free: an eighth */

/* What a group says. */
enum { FEW, ENOUGH };

static uint64_t read_group(struct fl_group_folder *f)
{
    uint64_t most, now;

    if (!fl_group_number(f, "/pids.max", &most, NULL)) {
        return UINT64_MAX; /* "max" */
    }
    return most >= SMALL && fl_group_number(f, "/pids.current", &now, NULL) &&
                   now <= most - most / SHARE_LEFT
               ? ENOUGH
               : FEW;
}

/* The kernel refuses nothing to root, who is 0 outside of user namespaces too: the first line's
 * first two numbers. */
static bool is_root(void)
{
    char map[64];
    uint64_t inside = 1, outside = 1;

    return fl_call(SYS_getuid) == 0 &&
           fl_sys.read_file("/proc/self/uid_map", map, sizeof map) == 0 &&
           fl_parse_after(map, "", &inside) && fl_parse_after(map, "0 ", &outside) && inside == 0 &&
           outside == 0;
}

bool fl_places_are_few(void)
{
    static const struct fl_group_kind kinds[] = {
        {"/sys/fs/cgroup", {"\n0::"}, read_group},
        {"/sys/fs/cgroup/pids", {":pids:"}, read_group},
    };
    static _Atomic bool unlimited; /* by groups: a process stays in its own, mostly */

    if (fl_sys.limit(RLIMIT_NPROC) < SMALL && !is_root()) {
        return true;
    }
    if (atomic_load_explicit(&unlimited, memory_order_relaxed)) {
        return false;
    }
    uint64_t group = fl_groups_least(kinds, sizeof kinds / sizeof kinds[0]);
    atomic_store_explicit(&unlimited, group == UINT64_MAX, memory_order_relaxed);
    return group == FEW;
}
