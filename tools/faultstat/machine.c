/* uname, /proc/cpuinfo, /proc/meminfo and the THP files of sysfs. */
#include "faultstat/machine.h"

#include "faultstat/proc.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define FL_THP_FOLDER "/sys/kernel/mm/transparent_hugepage/"

/* Copy what stands between `before` and `after`, or "unknown". */
static void copy_between(const char *text, const char *before, const char *after, char *out,
                         size_t len)
{
    const char *begin = strstr(text, before);
    begin = begin != NULL ? begin + strlen(before) : NULL;
    const char *end = begin != NULL ? strstr(begin, after) : NULL;
    if (end == NULL) {
        snprintf(out, len, "unknown");
    } else {
        snprintf(out, len, "%.*s", (int)(end - begin), begin);
    }
}

static int count_nodes(const char *online)
{
    int count = 0;
    for (const char *c = online; *c >= '0' && *c <= '9';) {
        char *end;
        long first = strtol(c, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        count += (int)(last - first + 1);
        c = *end == ',' ? end + 1 : end;
    }
    return count;
}

void fl_machine_read(struct fl_machine *machine)
{
    char text[16384] = "";
    struct utsname name;
    cpu_set_t cpus;
    memset(machine, 0, sizeof(*machine));
    if (uname(&name) == 0) {
        snprintf(machine->kernel, sizeof(machine->kernel), "%.78s", name.release);
    }
    (void)fl_proc_read_text("/proc/cpuinfo", text, sizeof(text));
    copy_between(text, "model name\t: ", "\n", machine->cpu, sizeof(machine->cpu));
    text[0] = '\0';
    (void)fl_proc_read_text(FL_THP_FOLDER "enabled", text, sizeof(text));
    copy_between(text, "[", "]", machine->thp, sizeof(machine->thp));
    text[0] = '\0';
    (void)fl_proc_read_text(FL_THP_FOLDER "defrag", text, sizeof(text));
    copy_between(text, "[", "]", machine->thp_defrag, sizeof(machine->thp_defrag));
    text[0] = '\0';
    (void)fl_proc_read_text(FL_THP_FOLDER "hpage_pmd_size", text, sizeof(text));
    machine->huge_page = strtoull(text, NULL, 10);
    text[0] = '\0';
    (void)fl_proc_read_text("/sys/devices/system/node/online", text, sizeof(text));
    machine->nodes = count_nodes(text);
    text[0] = '\0';
    (void)fl_proc_read_text("/proc/meminfo", text, sizeof(text));
    machine->memory = fl_proc_find_number(text, "MemTotal:", 0) << 10;
    machine->available = fl_proc_find_number(text, "MemAvailable:", 0) << 10;
    machine->cores = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
}

json_t *fl_machine_json(const struct fl_machine *machine)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:I}", "kernel", machine->kernel,
                     "cpu", machine->cpu, "thp", machine->thp, "thp_defrag", machine->thp_defrag,
                     "cores", machine->cores, "nodes", machine->nodes, "memory_bytes",
                     (json_int_t)machine->memory, "available_bytes", (json_int_t)machine->available,
                     "huge_page_bytes", (json_int_t)machine->huge_page);
}
