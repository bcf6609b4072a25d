/* Descendants by /proc/PID/task/TID/children. */
#include "faultstat/family.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FL_PATH = 64, FL_CHILDREN_LEN = 16384 };

static struct fl_member *find(struct fl_family *family, pid_t pid)
{
    for (size_t i = 0; i < family->count; i++) {
        if (family->member[i].pid == pid && family->member[i].is_alive) {
            return &family->member[i];
        }
    }
    return NULL;
}

static uint64_t image_of(pid_t pid)
{
    char path[FL_PATH];
    struct stat what;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    if (stat(path, &what) != 0) {
        return errno == EACCES || errno == EPERM ? 1 : 0; /* another user's: that says enough */
    }
    return what.st_ino + what.st_dev * 0x9e3779b97f4a7c15u;
}

/* Read one member; it has ended when its number is another process's or free. */
static void read_member(struct fl_family *family, struct fl_member *m)
{
    struct fl_usage usage;
    if (fl_proc_read_usage(m->pid, 0, &usage, NULL) != 0 ||
        (m->usage.born != 0 && usage.born != m->usage.born)) {
        m->is_alive = false;
        return;
    }
    m->usage = usage;
    uint64_t image = family->library != NULL ? image_of(m->pid) : 0;
    if (image != 0 && (image != m->image || !m->served.is_final)) {
        struct fl_served served;
        family->looks++;
        fl_served_read(m->pid, family->library, &served);
        if (served.state != FL_SERVED_UNKNOWN) {
            m->served = served;
            m->image = image;
        }
    }
}

static void add(struct fl_family *family, pid_t pid)
{
    if (find(family, pid) != NULL) {
        return;
    }
    if (family->count == FL_FAMILY_MAX) {
        family->lost++;
        return;
    }
    family->member[family->count++] = (struct fl_member){.pid = pid, .is_alive = true};
}

static void add_children_of(struct fl_family *family, pid_t pid)
{
    char path[FL_PATH * 2];
    char text[FL_CHILDREN_LEN];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0])) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", (int)pid, entry->d_name);
        char *at = fl_proc_read_text(path, text, sizeof(text)) > 0 ? text : NULL;
        char *end = at;
        for (long child; at != NULL && (child = strtol(at, &end, 10)) > 0; at = end) {
            add(family, (pid_t)child);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

void fl_family_update(struct fl_family *family, pid_t root)
{
    if (family->count == 0) {
        add(family, root);
    }
    for (size_t i = 0; i < family->count; i++) { /* grows while it is walked */
        struct fl_member *m = &family->member[i];
        if (m->is_alive) {
            read_member(family, m);
        }
        if (m->is_alive) {
            add_children_of(family, m->pid);
        }
    }
}

void fl_family_kill(const struct fl_family *family, int signal_number)
{
    for (size_t i = 0; i < family->count; i++) {
        if (family->member[i].is_alive) {
            kill(family->member[i].pid, signal_number);
        }
    }
}

struct fl_usage fl_family_usage(const struct fl_family *family)
{
    struct fl_usage sum = {0};
    for (size_t i = 0; i < family->count; i++) {
        const struct fl_member *m = &family->member[i];
        struct fl_usage whole = m->usage;
        if (m->is_alive) {
            (void)fl_proc_read_whole_usage(m->pid, &whole);
            sum.minor += whole.minor;
            sum.major += whole.major;
            sum.user_ns += whole.user_ns;
            sum.sys_ns += whole.sys_ns;
        }
    }
    return sum;
}

struct fl_served fl_family_served(const struct fl_family *family)
{
    const struct fl_member *most = NULL;
    for (size_t i = 0; i < family->count; i++) {
        const struct fl_member *m = &family->member[i];
        if (m->image == 0) {
            continue;
        }
        bool is_surer = most != NULL && m->served.is_final && !most->served.is_final;
        bool is_as_sure = most == NULL || m->served.is_final == most->served.is_final;
        if (is_surer || (is_as_sure && (most == NULL || m->usage.minor > most->usage.minor))) {
            most = m;
        }
    }
    return most != NULL ? most->served : (struct fl_served){0};
}
