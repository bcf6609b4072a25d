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

/* One line of stat: faults and ticks of the process or thread, and of its reaped children. */
struct stat_line {
    unsigned long long minor, child_minor, major, child_major;
    unsigned long long user, sys, born;
    long long child_user, child_sys;
};

static int read_stat(const char *path, struct stat_line *out, char name[16])
{
    char text[FL_TEXT_LEN];
    ssize_t len = fl_proc_read_text(path, text, sizeof(text));
    if (len < 0) {
        return (int)len;
    }
    const char *open_mark = strchr(text, '(');
    const char *close_mark = strrchr(text, ')'); /* the name itself may hold any character */
    if (open_mark == NULL || close_mark == NULL || close_mark < open_mark) {
        return -EPROTO;
    }
    if (sscanf(close_mark + 1,
               " %*c %*d %*d %*d %*d %*d %*u %llu %llu %llu %llu %llu %llu %lld %lld %*d %*d %*d "
               "%*d %llu",
               &out->minor, &out->child_minor, &out->major, &out->child_major, &out->user,
               &out->sys, &out->child_user, &out->child_sys, &out->born) != 9) {
        return -EPROTO;
    }
    if (name != NULL) {
        snprintf(name, 16, "%.*s", (int)(close_mark - open_mark - 1), open_mark + 1);
    }
    return 0;
}

static uint64_t tick_ns(void)
{
    return UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
}

int fl_proc_read_usage(pid_t pid, pid_t tid, struct fl_usage *out, char name[16])
{
    char path[FL_PATH_LEN];
    struct stat_line line;
    if (tid == 0) {
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    } else {
        snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    }
    int rc = read_stat(path, &line, name);
    if (rc == 0) {
        *out = (struct fl_usage){line.minor, line.major, line.user * tick_ns(),
                                 line.sys * tick_ns(), line.born};
    }
    return rc;
}

int fl_proc_read_whole_usage(pid_t pid, struct fl_usage *out)
{
    char path[FL_PATH_LEN];
    struct stat_line line;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int rc = read_stat(path, &line, NULL);
    if (rc == 0) {
        *out = (struct fl_usage){
            line.minor + line.child_minor,
            line.major + line.child_major,
            (line.user + (uint64_t)line.child_user) * tick_ns(),
            (line.sys + (uint64_t)line.child_sys) * tick_ns(),
            line.born,
        };
    }
    return rc;
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
        .pss = fl_proc_find_number(text, "Pss:", 0) << 10,
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
