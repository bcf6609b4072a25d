#include "refuse.h"
#include "run.h"
#include "seccomp.h"

enum { FAILED = 98 };

void fl_refuse(void *arg)
{
    static struct filter f;

    filter_begin(&f);
    for (const unsigned *call = arg; *call != 0; call++) {
        filter_answer(&f, *call, SECCOMP_RET_ERRNO | EPERM);
    }
    filter_end(&f, SECCOMP_RET_ALLOW);
    if (filter_install(&f) != 0) {
        _exit(FAILED);
    }
    fl_is_contained = true;
}
