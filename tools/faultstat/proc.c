/* Reads /proc. Each reader makes one open, read and close: a record is of one moment.
 * Sources: proc(5); fs/proc/array.c do_task_stat: /proc/PID/stat adds what ended threads used. */
#include "faultstat/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FL_PATH_LEN = 64, FL_TEXT_LEN = 4096, FL_VMSTAT_LEN = 32768 };

ssize_t fl_proc_read_text(const char *path, char *text, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    size_t used = 0;
    ssize_t n = 0;
    while (used < len - 1 && (n = read(fd, text + used, len - 1 - used)) > 0) {
        used += (size_t)n;
    }
    int saved_errno = errno;
    close(fd);
    if (n < 0) {
        return -saved_errno;
    }
    text[used] = '\0';
    return (ssize_t)used;
}

uint64_t fl_proc_find_number(const char *text, const char *key, uint64_t otherwise)
{
    size_t len = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0) {
            return strtoull(line + len, NULL, 10);
        }
    }
    return otherwise;
}

int fl_proc_read_usage(pid_t pid, pid_t tid, struct fl_usage *out, char name[16])
{
    char path[FL_PATH_LEN];
    char text[FL_TEXT_LEN];
    if (tid == 0) {
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    } else {
        snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    }
    ssize_t len = fl_proc_read_text(path, text, sizeof(text));
    if (len < 0) {
        return (int)len;
    }
    const char *open_mark = strchr(text, '(');
    const char *close_mark = strrchr(text, ')'); /* the name itself may hold any character */
    if (open_mark == NULL || close_mark == NULL || close_mark < open_mark) {
        return -EPROTO;
    }
    unsigned long long minor, major, user, sys, born;
    if (sscanf(
            close_mark + 1,
            " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
            &minor, &major, &user, &sys, &born) != 5) {
        return -EPROTO;
    }
    uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    *out = (struct fl_usage){minor, major, user * tick_ns, sys * tick_ns, born};
    if (name != NULL) {
        snprintf(name, 16, "%.*s", (int)(close_mark - open_mark - 1), open_mark + 1);
    }
    return 0;
}

int fl_proc_read_memory(pid_t pid, struct fl_memory *out)
{
    char path[FL_PATH_LEN];
    char text[FL_TEXT_LEN];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    ssize_t len = fl_proc_read_text(path, text, sizeof(text));
    if (len < 0) {
        return (int)len;
    }
    *out = (struct fl_memory){
        .rss = fl_proc_find_number(text, "VmRSS:", 0) << 10,
        .rss_peak = fl_proc_find_number(text, "VmHWM:", 0) << 10,
    };
    return 0;
}

int fl_proc_read_rollup(pid_t pid, struct fl_rollup *out)
{
    char path[FL_PATH_LEN];
    char text[FL_TEXT_LEN];
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    ssize_t len = fl_proc_read_text(path, text, sizeof(text));
    if (len < 0) {
        return (int)len;
    }
    *out = (struct fl_rollup){
        .anonymous = fl_proc_find_number(text, "Anonymous:", 0) << 10,
        .huge = fl_proc_find_number(text, "AnonHugePages:", 0) << 10,
    };
    return 0;
}

int fl_proc_read_thp(struct fl_thp *out)
{
    char text[FL_VMSTAT_LEN];
    ssize_t len = fl_proc_read_text("/proc/vmstat", text, sizeof(text));
    if (len < 0) {
        return (int)len;
    }
    *out = (struct fl_thp){
        .fault_alloc = fl_proc_find_number(text, "thp_fault_alloc ", 0),
        .fault_fallback = fl_proc_find_number(text, "thp_fault_fallback ", 0),
        .split_page = fl_proc_find_number(text, "thp_split_page ", 0),
        .split_pmd = fl_proc_find_number(text, "thp_split_pmd ", 0),
    };
    return 0;
}

uint64_t fl_proc_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
