/* Has a seccomp filter come since boot? Then calls that a program's own filter does not expect may end the process. */
#include "sys/internal.h"

#include <sys/prctl.h>

static int
    mode_at_boot; /* of prctl(PR_GET_SECCOMP): a container's filter is there from the start and answers EPERM */

void fl_sys_note_confinement(void)
{
    mode_at_boot = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
}

bool fl_sys_is_confined(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != mode_at_boot;
}
