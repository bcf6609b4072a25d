/* Which process is this? A child that shares no handler with us (clone(2) by number, _Fork(3)) has
 * the parent's tables as they were at that moment, perhaps amid a change, and none of its threads.
 *
 * One page says so: children of fork find it wiped (MADV_WIPEONFORK, Linux 4.14), until our own
 * handler settles there. A child of vfork(2) shares it; what must not be done there asks
 * fl_home_is_borrowed, which is a system call.
 * State: `word`, which points to a constant until fl_home_settle made the page. */
#include "sys/sys.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>

static _Atomic uint32_t before_boot = 1;
_Atomic uint32_t *fl_home_word = &before_boot;
static FL_AT_START pid_t pid; /* the process that settled last */

void fl_home_note(void)
{
    pid = fl_sys_is_confined() ? 0 : fl_call_pid();
}

void fl_home_settle(void)
{
    enum { RW = PROT_READ | PROT_WRITE, ANON = MAP_PRIVATE | MAP_ANONYMOUS };

    if (fl_home_word == &before_boot) {
        long page = fl_call(SYS_mmap, 0, fl_page.base, RW, ANON, -1, 0);
        if (page > 0) {
            (void)fl_call(SYS_madvise, page, fl_page.base, MADV_WIPEONFORK);
            fl_home_word = (_Atomic uint32_t *)page; /* NOLINT(performance-no-int-to-ptr) */
        }
    }
    pid = fl_call_pid();
    atomic_store_explicit(fl_home_word, 1, memory_order_relaxed);
}

void fl_home_settle_in_child(void)
{
    pid = fl_sys_is_confined() ? 0 : fl_call_pid();
    atomic_store_explicit(fl_home_word, 1, memory_order_relaxed);
}

void fl_home_leave(void)
{
    atomic_store_explicit(fl_home_word, 0, memory_order_relaxed);
}

bool fl_home_is_borrowed(void)
{
    return pid != fl_call_pid();
}

int fl_home_pid(void)
{
    return pid;
}
