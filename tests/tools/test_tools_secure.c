/* A program that runs with raised privileges ignores LD_PRELOAD, and compare says so. */
#include "cases.h"
#include "child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FL_COPY FL_LARGE ".setuid"

CASE(a_setuid_program_is_not_loaded)
{
    fl_child_ends(0, ARGV("cp", FL_LARGE, FL_COPY), NULL);
    assert_int_equal(chown(FL_COPY, 65534, 65534), 0);
    assert_int_equal(chmod(FL_COPY, 04755), 0);
    fl_child_run(ARGV(FL_FAULTSTAT, "compare", "-a", "glibc,faultless", "-n", "2", "--", FL_COPY),
                 NULL);
    unlink(FL_COPY);
    assert_int_equal(output.status, 1);
    assert_says(output.out, "not compared: not loaded: raised privileges");
}

int main(void)
{
    struct statvfs where;
    if (geteuid() != 0) {
        printf("SKIP test_tools_secure: needs root, got user %d\n", (int)geteuid());
        return 77;
    }
    if (statvfs(FL_LARGE, &where) == 0 && (where.f_flag & ST_NOSUID) != 0) {
        printf("SKIP test_tools_secure: needs a file system with setuid, got nosuid\n");
        return 77;
    }
    return RUN_CASES();
}
