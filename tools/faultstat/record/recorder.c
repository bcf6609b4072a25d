#include "faultstat/record/recorder.h"

#include "faultstat/record/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* A record is in its ring a moment after the time that it bears. */
static const uint64_t settle_ns = 1000000;
static const uint64_t reread_ns =
    100000000; /* least time between two readings of a process's maps */
/* Bytes of a mapping: from there on glibc's malloc maps each block, see mallopt(3). Blocks that
 * faultless would serve below that, from 64 KiB on, lie in heaps and are not told apart. */
static const uint64_t avoidable_least = (uint64_t)128 << 10;

void fl_recorder_add(struct fl_recorder *recorder, const struct fl_place *place, size_t count,
                     enum fl_kind kind, enum fl_span span, double faults)
{
    uint32_t key[FL_KEY_FRAMES + FL_FRAMES_MOST] = {[FL_KEY_KIND] = kind, [FL_KEY_SPAN] = span};
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes[2] = {place[i].module, place[i].address};
        key[FL_KEY_FRAMES + i] = fl_intern(&recorder->tally.places, bytes, sizeof(bytes));
    }
    uint32_t number =
        fl_intern(&recorder->tally.stacks, key, (FL_KEY_FRAMES + count) * sizeof(key[0]));
    if (number == FL_INTERN_NONE) {
        return;
    }
    if (number >= recorder->tally.room) {
        size_t room = (size_t)number * 2 + 256;
        double *grown = reallocarray(recorder->tally.faults, room, sizeof(*grown));
        if (grown == NULL) {
            return;
        }
        memset(grown + recorder->tally.room, 0, (room - recorder->tally.room) * sizeof(*grown));
        recorder->tally.faults = grown;
        recorder->tally.room = room;
    }
    recorder->tally.faults[number] += faults;
}

/* The part of the run that a time lies in, 0 before the first mark. Sets *sum to its sums. */
static size_t find_step(struct fl_recorder *recorder, const struct fl_watch *watch,
                        uint64_t time_ns, struct fl_step_sum **sum)
{
    size_t i = watch->steps.count;
    while (i > 0 && watch->steps.mark[i - 1].arrive_ns > time_ns) {
        i--;
    }
    if (i >= recorder->steps.count) {
        size_t count = i * 2 + 64;
        struct fl_step_sum *grown = reallocarray(recorder->steps.part, count, sizeof(*grown));
        if (grown == NULL) {
            *sum = NULL;
            return i;
        }
        memset(grown + recorder->steps.count, 0, (count - recorder->steps.count) * sizeof(*grown));
        recorder->steps.part = grown;
        recorder->steps.count = count;
    }
    *sum = &recorder->steps.part[i];
    return i;
}

static void add_map(struct fl_recorder *recorder, struct fl_process *process, uint64_t start,
                    uint64_t len, uint64_t offset, uint32_t prot, uint32_t flags, const char *name)
{
    struct fl_map map = {
        .start = start,
        .end = start + len,
        .whole = len,
        .offset = offset,
        .kind = fl_map_kind_of(name, flags),
        .is_writable = (prot & PROT_WRITE) != 0,
        .is_private = (flags & MAP_SHARED) == 0,
    };
    if ((prot & PROT_EXEC) != 0) {
        map.module = map.kind == FL_MAP_FILE
                         ? fl_modules_get(&recorder->unwinder.modules, name)
                         : fl_modules_get_jit(&recorder->unwinder.modules, process->pid);
    }
    (void)fl_process_map(process, &map);
}

void fl_recorder_read_maps(struct fl_recorder *recorder, struct fl_process *process, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        char *at = line;
        uint64_t start = strtoull(at, &at, 16);
        uint64_t end = strtoull(at + 1, &at, 16);
        if (strlen(at) < sizeof(" rwxp ")) { /* no such line */
            continue;
        }
        const char *mode = at + 1;
        uint64_t offset = strtoull(at + 6, &at, 16);
        char *name = line + strcspn(line, "\n");
        *name = '\0';
        char *found = strpbrk(at, "/[");
        name = found != NULL ? found : name;
        if (fl_process_find(process, start) == NULL || fl_process_find(process, end - 1) == NULL) {
            add_map(recorder, process, start, end - start, offset,
                    (mode[1] == 'w' ? PROT_WRITE : 0u) | (mode[2] == 'x' ? PROT_EXEC : 0u),
                    mode[3] == 's' ? MAP_SHARED : MAP_PRIVATE, name);
        }
    }
    free(line);
}

/* Read a process's maps: mremap and growing stacks are not told. */
static void reread(struct fl_recorder *recorder, struct fl_process *process, uint64_t now_ns)
{
    char path[40];
    if (process->read_ns != 0 && now_ns - process->read_ns < reread_ns) {
        return;
    }
    process->read_ns = now_ns;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)process->pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        fl_recorder_read_maps(recorder, process, file);
        fclose(file);
    }
}

/* Has a page of a private file mapping become the process's own?
 * Source: Documentation/admin-guide/mm/pagemap.rst. */
static bool is_own_page(struct fl_process *process, uint64_t addr)
{
    const uint64_t present = UINT64_C(1) << 63;
    const uint64_t of_file = UINT64_C(1) << 61;
    uint64_t entry = 0;
    char path[40];
    if (process->pagemap_fd < 0) {
        snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)process->pid);
        process->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    off_t at = (off_t)(addr / (uint64_t)sysconf(_SC_PAGESIZE) * sizeof(entry));
    return process->pagemap_fd >= 0 &&
           pread(process->pagemap_fd, &entry, sizeof(entry), at) == sizeof(entry) &&
           (entry & present) != 0 && (entry & of_file) == 0;
}

/* Did the tracepoint see this fault just before, on a page that was present? */
static bool was_present(const struct fl_recorder *recorder, const struct fl_event *fault,
                        uint64_t page_len)
{
    const uint64_t longest_ns = 100000000;
    const struct fl_protected *seen = &recorder->protected[(size_t)fault->tid % FL_PROTECTED];
    return seen->tid == fault->tid && seen->addr / page_len == fault->addr / page_len &&
           seen->time_ns <= fault->time_ns && fault->time_ns - seen->time_ns < longest_ns;
}

/* Would faultless not take it? Its pages stay, those of blocks at and above its threshold. */
static bool is_avoidable(enum fl_kind kind, const struct fl_map *map)
{
    return (kind == FL_KIND_ANON || kind == FL_KIND_HUGE || kind == FL_KIND_ZERO) &&
           map->kind != FL_MAP_STACK && map->whole >= avoidable_least;
}

static void count_step(struct fl_recorder *recorder, const struct fl_watch *watch,
                       const struct fl_event *fault, enum fl_kind kind, const struct fl_map *map)
{
    struct fl_step_sum *sum;
    double n = recorder->every;
    size_t step = find_step(recorder, watch, fault->time_ns, &sum);
    if (sum == NULL) {
        return;
    }
    if (sum->faults == 0 && step > 1) { /* the first fault of a new step: the one before is whole */
        recorder->steps.last = recorder->steps.now;
        recorder->steps.now.count = recorder->steps.now.stride = 0;
        recorder->steps.now.seen = 0;
    }
    sum->faults += n;
    sum->cost_ns += n * recorder->costs.ns[kind];
    if (is_avoidable(kind, map)) {
        const struct fl_costs *costs = &recorder->costs;
        uint64_t base = (uint64_t)sysconf(_SC_PAGESIZE);
        sum->avoidable += n;
        sum->kernel_ns += n * (costs->saved_ns[kind] - costs->user_ns[kind]);
        sum->trail_ns += n * costs->user_ns[kind];
        sum->reach_ns += n * costs->user_reach_ns[kind];
        sum->clear_ns += kind == FL_KIND_ZERO ? n * costs->clear_ns : 0;
        sum->base_pages += kind == FL_KIND_ANON ? n : 0;
        sum->pages += kind == FL_KIND_HUGE   ? n * (double)(fault->page_size / base)
                      : kind == FL_KIND_ZERO ? 0 /* the write that follows brings it */
                                             : n;
    } else {
        sum->kept_ns += n * recorder->costs.ns[kind];
    }
    fl_points_add(&recorder->steps.now, (struct fl_point){fault->time_ns, fault->addr, kind});
}

static void take_fault(struct fl_recorder *recorder, const struct fl_watch *watch,
                       const struct fl_event *fault)
{
    struct fl_place place[FL_FRAMES_MOST];
    bool is_cut;
    struct fl_process *process = fl_processes_get(&recorder->processes, fault->pid);
    if (process == NULL) {
        return;
    }
    const struct fl_map *map = fl_process_find(process, fault->addr);
    if (map == NULL) {
        reread(recorder, process, fault->time_ns);
        map = fl_process_find(process, fault->addr);
    }
    struct fl_facts facts = {
        .map = map,
        .page_size = fault->page_size,
        .base_page = (uint64_t)sysconf(_SC_PAGESIZE),
        .is_major = fault->is_major,
        .is_no_page = fault->is_no_page,
        .has_forked = process->has_forked,
        .may_swap = recorder->may_swap,
    };
    facts.was_present = was_present(recorder, fault, facts.base_page);
    facts.is_copied = map != NULL && map->kind == FL_MAP_FILE && map->is_writable &&
                      map->is_private && is_own_page(process, fault->addr);
    enum fl_kind kind = fl_kind_of(&facts);
    size_t count = fl_unwind(&recorder->unwinder, process, fault, place, &is_cut);
    double n = recorder->every;
    fl_recorder_add(recorder, place, count, kind, fl_span_of(map), n);
    recorder->gaps.cut += is_cut ? n : 0;
    recorder->gaps.unmapped += map == NULL ? n : 0;
    recorder->samples++;
    fl_series_at(&recorder->series, fault->time_ns)->faults += n;
    if (map != NULL) {
        count_step(recorder, watch, fault, kind, map);
    }
}

/* Is the process in a system call other than those that map and unmap? The bytes before the place
 * where the user goes on tell: the C library's wrappers are `mov $number, %eax; syscall`. */
static bool is_other_call(pid_t pid, uint64_t ip)
{
    static const uint8_t memory_call[] = {9,  10, 11, 12,
                                          25, 28}; /* mmap, mprotect, munmap, brk,
                                                                   * mremap, madvise */
    uint8_t code[7] = {0};
    struct iovec to = {code, sizeof(code)};
    struct iovec from = {(void *)(uintptr_t)(ip - sizeof(code)), sizeof(code)};
    if (process_vm_readv(pid, &to, 1, &from, 1, 0) != sizeof(code) || code[5] != 0x0f ||
        code[6] != 0x05) {
        return false;
    }
    bool is_plain = code[0] == 0xb8 && code[2] == 0 && code[3] == 0 && code[4] == 0;
    return !is_plain || memchr(memory_call, code[1], sizeof(memory_call)) == NULL;
}

/* Children of the process that marks are in no step's processor time. */
static void count_tick(struct fl_recorder *recorder, const struct fl_watch *watch,
                       const struct fl_event *tick)
{
    struct fl_step_sum *sum;
    if (watch->steps.pid == 0 || watch->steps.pid == tick->pid) {
        (void)find_step(recorder, watch, tick->time_ns, &sum);
        if (sum == NULL) {
            return;
        }
        if (!tick->is_kernel) {
            sum->ticks.user++;
        } else if (is_other_call(tick->pid, tick->addr)) {
            sum->ticks.other++;
        } else {
            sum->ticks.memory++;
        }
    }
}

struct turn {
    struct fl_recorder *recorder;
    const struct fl_watch *watch;
};

static void take_event(void *arg, const void *record, size_t len)
{
    const struct turn *turn = arg;
    struct fl_recorder *recorder = turn->recorder;
    struct fl_event event;
    if (fl_event_decode(&recorder->rings.layout, record, len, &event) != 0) {
        return; /* counted when it was queued */
    }
    struct fl_process *process = NULL;
    switch (event.type) {
    case FL_EVENT_FAULT:
        take_fault(recorder, turn->watch, &event);
        break;
    case FL_EVENT_CLOCK:
        count_tick(recorder, turn->watch, &event);
        break;
    case FL_EVENT_PROTECT:
        recorder->protected[(size_t)event.tid % FL_PROTECTED] =
            (struct fl_protected){event.tid, event.addr, event.time_ns};
        break;
    case FL_EVENT_FORK:
        recorder->gaps.forked |= event.parent != event.pid; /* else it is a thread */
        fl_processes_fork(&recorder->processes, event.parent, event.pid);
        break;
    case FL_EVENT_MAP:
    case FL_EVENT_EXEC:
        process = fl_processes_get(&recorder->processes, event.pid);
        if (process != NULL && event.type == FL_EVENT_EXEC) {
            fl_process_exec(process);
        } else if (process != NULL) {
            add_map(recorder, process, event.addr, event.len, event.offset, event.prot, event.flags,
                    event.name);
        }
        break;
    default:
        break;
    }
}

static void queue_record(void *arg, const void *record, size_t len)
{
    struct fl_recorder *recorder = arg;
    struct fl_event event;
    if (fl_event_decode(&recorder->rings.layout, record, len, &event) != 0) {
        recorder->gaps.broken++;
    } else if (event.type == FL_EVENT_LOST) {
        recorder->gaps.lost += event.lost;
    } else if (event.type != FL_EVENT_OTHER) {
        fl_queue_add(&recorder->queue, event.time_ns, record, len);
    }
}

static void drain(struct fl_recorder *recorder, const struct fl_watch *watch, uint64_t before_ns)
{
    struct turn turn = {recorder, watch};
    fl_rings_drain(&recorder->rings, queue_record, recorder);
    fl_queue_flush(&recorder->queue, before_ns, take_event, &turn);
}

/* Resident and huge pages now; the latter at most 1 % of the time, as the kernel walks all. */
static void read_memory(struct fl_recorder *recorder, pid_t pid, uint64_t now_ns)
{
    static uint64_t rest_until_ns;
    struct fl_memory memory;
    struct fl_rollup rollup;
    struct fl_bucket *bucket = fl_series_at(&recorder->series, now_ns);
    if (fl_proc_read_memory(pid, &memory) == 0 && memory.rss > bucket->rss) {
        bucket->rss = memory.rss;
    }
    if (now_ns < rest_until_ns || fl_proc_read_rollup(pid, &rollup) != 0) {
        return;
    }
    bucket->huge = rollup.huge > bucket->huge ? rollup.huge : bucket->huge;
    uint64_t after_ns = fl_proc_now_ns();
    rest_until_ns = after_ns + (after_ns - now_ns) * 200;
}

static struct fl_io read_io(pid_t pid)
{
    char path[40];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    if (fl_proc_read_text(path, text, sizeof(text)) <= 0) {
        return (struct fl_io){0};
    }
    return (struct fl_io){
        .calls = fl_proc_find_number(text, "syscr: ", 0) + fl_proc_find_number(text, "syscw: ", 0),
        .bytes = fl_proc_find_number(text, "rchar: ", 0) + fl_proc_find_number(text, "wchar: ", 0),
    };
}

/* Note the processor time at a new mark: /proc/PID/stat would give it in ticks of 10 ms. */
static void note_mark(struct fl_recorder *recorder, const struct fl_watch *watch, pid_t pid)
{
    struct fl_step_sum *sum;
    struct timespec used;
    clockid_t clock;
    if (watch->steps.count == recorder->steps.marks) {
        return;
    }
    recorder->steps.marks = watch->steps.count;
    find_step(recorder, watch, UINT64_MAX, &sum);
    if (sum != NULL && clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0) {
        sum->cpu_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
        sum->io = read_io(pid);
    }
}

void fl_recorder_look(void *arg, const struct fl_watch *watch, pid_t pid)
{
    struct fl_recorder *recorder = arg;
    uint64_t now_ns = fl_proc_now_ns();
    note_mark(recorder, watch, pid);
    if (recorder->has_perf) {
        drain(recorder, watch, now_ns - settle_ns);
    } else {
        fl_counters_look(recorder, pid, now_ns);
    }
    read_memory(recorder, pid, now_ns);
}

void fl_recorder_finish(struct fl_recorder *recorder, const struct fl_watch *watch)
{
    if (recorder->has_perf) {
        drain(recorder, watch, UINT64_MAX);
        recorder->gaps.lost += recorder->queue.dropped;
    } else {
        fl_counters_finish(recorder);
    }
}

/* A line for each swap area stands below the headings. */
static bool has_swap(void)
{
    char text[4096];
    const char *line;
    return fl_proc_read_text("/proc/swaps", text, sizeof(text)) > 0 &&
           (line = strchr(text, '\n')) != NULL && line[1] != '\0';
}

int fl_recorder_open(struct fl_recorder *recorder, const struct fl_rings_spec *spec)
{
    memset(recorder, 0, sizeof(*recorder));
    recorder->counters = calloc(1, sizeof(*recorder->counters));
    if (recorder->counters == NULL || fl_unwinder_open(&recorder->unwinder) != 0) {
        return -ENOMEM;
    }
    if (spec != NULL) {
        fl_costs_measure(&recorder->costs); /* without perf events no kind is known to put it on */
    }
    recorder->may_swap = has_swap();
    recorder->every = spec != NULL ? (double)spec->every : 1;
    recorder->perf_error = spec != NULL ? fl_rings_open(&recorder->rings, spec) : -ENODATA;
    if (recorder->perf_error == 0) {
        /* What recording costs; with rings of its own, for it may fill them. */
        fl_rings_enable(&recorder->rings);
        fl_costs_measure_recording(&recorder->costs);
        fl_rings_close(&recorder->rings);
        recorder->perf_error = fl_rings_open(&recorder->rings, spec);
    }
    recorder->has_perf = recorder->perf_error == 0;
    if (!recorder->has_perf) {
        memset(&recorder->costs, 0, sizeof(recorder->costs));
    }
    fl_series_start(&recorder->series, fl_proc_now_ns());
    return 0;
}

void fl_recorder_close(struct fl_recorder *recorder)
{
    fl_rings_close(&recorder->rings);
    fl_queue_clear(&recorder->queue);
    fl_unwinder_close(&recorder->unwinder);
    fl_processes_clear(&recorder->processes);
    fl_intern_clear(&recorder->tally.places);
    fl_intern_clear(&recorder->tally.stacks);
    free(recorder->tally.faults);
    free(recorder->steps.part);
    free(recorder->counters->thread);
    free(recorder->counters);
}
