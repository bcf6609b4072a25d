/* Preloaded before libfaultless.so under a program whose processes end by _exit(2), which writes no
 * statistics: appends what they were to the file that REPORT_AT_EXIT names. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faultless/faultless.h"

void _exit(int status)
{
    struct fl_stats s = {.size = sizeof s};
    const char *file = getenv("REPORT_AT_EXIT");
    char name[16] = "", line[256];

    if (file != NULL && prctl(PR_GET_NAME, name) == 0 && fl_stats_read(&s) == 0) {
        int n = snprintf(line, sizeof line,
                         "{\"pid\": %d, \"program\": \"%s\", \"requests\": %llu, "
                         "\"in_use_peak_bytes\": %llu, \"populated_peak_bytes\": %llu, "
                         "\"populate_errors\": %llu}\n",
                         (int)getpid(), name, (unsigned long long)s.requests,
                         (unsigned long long)s.in_use_peak_bytes,
                         (unsigned long long)s.populated_peak_bytes,
                         (unsigned long long)s.populate_errors);
        int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) {
            (void)!write(fd, line, (size_t)n);
        }
    }
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}
