#include "faultstat/record/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t stack_most = (uint64_t)8 << 20; /* bytes: the usual RLIMIT_STACK */

struct fl_process *fl_processes_get(struct fl_processes *all, pid_t pid)
{
    for (size_t i = all->count; i-- > 0;) {
        if (all->process[i]->pid == pid) {
            return all->process[i];
        }
    }
    if (all->count == all->capacity) {
        size_t capacity = all->capacity != 0 ? all->capacity * 2 : 16;
        struct fl_process **grown = reallocarray(all->process, capacity, sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        all->process = grown;
        all->capacity = capacity;
    }
    struct fl_process *process = calloc(1, sizeof(*process));
    if (process != NULL) {
        process->pid = pid;
        process->pagemap_fd = -1;
        all->process[all->count++] = process;
    }
    return process;
}

void fl_processes_fork(struct fl_processes *all, pid_t parent, pid_t pid)
{
    if (parent == pid) {
        return;
    }
    struct fl_process *from = fl_processes_get(all, parent);
    struct fl_process *to = fl_processes_get(all, pid);
    if (from == NULL || to == NULL) {
        return;
    }
    from->has_forked = to->has_forked = true;
    fl_process_exec(to);
    to->has_forked = true;
    to->map = calloc(from->count + 1, sizeof(*to->map));
    if (to->map != NULL) {
        memcpy(to->map, from->map, from->count * sizeof(*to->map));
        to->count = from->count;
        to->capacity = from->count + 1;
    }
}

void fl_process_exec(struct fl_process *process)
{
    free(process->map);
    process->map = NULL;
    process->count = process->capacity = 0;
    process->has_forked = false;
    process->read_ns = 0;
    if (process->pagemap_fd >= 0) {
        close(process->pagemap_fd);
        process->pagemap_fd = -1;
    }
}

/* The first mapping that ends above `addr`. */
static size_t find_place(const struct fl_process *process, uint64_t addr)
{
    size_t low = 0;
    size_t high = process->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (process->map[middle].end <= addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int make_room(struct fl_process *process)
{
    if (process->count + 2 <= process->capacity) {
        return 0;
    }
    size_t capacity = process->capacity * 2 + 16;
    struct fl_map *grown = reallocarray(process->map, capacity, sizeof(*grown));
    if (grown == NULL) {
        return -ENOMEM;
    }
    process->map = grown;
    process->capacity = capacity;
    return 0;
}

int fl_process_map(struct fl_process *process, const struct fl_map *map)
{
    if (map->end <= map->start || make_room(process) != 0) {
        return map->end <= map->start ? 0 : -ENOMEM;
    }
    size_t first = find_place(process, map->start);
    size_t last = first; /* past the mappings that the new one touches */
    while (last < process->count && process->map[last].start < map->end) {
        last++;
    }
    struct fl_map piece[3];
    size_t pieces = 0;
    if (first < last && process->map[first].start < map->start) {
        piece[pieces] = process->map[first];
        piece[pieces++].end = map->start;
    }
    piece[pieces++] = *map;
    if (first < last && process->map[last - 1].end > map->end) {
        struct fl_map *right = &piece[pieces++];
        *right = process->map[last - 1];
        right->offset += map->end - right->start;
        right->start = map->end;
    }
    memmove(process->map + first + pieces, process->map + last,
            (process->count - last) * sizeof(*process->map));
    memcpy(process->map + first, piece, pieces * sizeof(*piece));
    process->count += pieces;
    process->count -= last - first;
    return 0;
}

const struct fl_map *fl_process_find(const struct fl_process *process, uint64_t addr)
{
    size_t i = find_place(process, addr);
    if (i == process->count) {
        return NULL;
    }
    const struct fl_map *map = &process->map[i];
    if (map->start <= addr) {
        return map;
    }
    return map->kind == FL_MAP_STACK && map->start - addr <= stack_most ? map : NULL;
}

enum fl_map_kind fl_map_kind_of(const char *name, uint32_t flags)
{
    if (strcmp(name, "[heap]") == 0) {
        return FL_MAP_HEAP;
    }
    if (strncmp(name, "[stack", 6) == 0) {
        return FL_MAP_STACK;
    }
    bool is_memory = strncmp(name, "/dev/zero", 9) == 0 || strncmp(name, "/memfd:", 7) == 0 ||
                     strncmp(name, "/SYSV", 5) == 0 || strncmp(name, "/dev/shm/", 9) == 0;
    bool is_file = name[0] == '/' && name[1] != '/'; /* "//anon" is none */
    if (is_memory || (!is_file && (flags & MAP_SHARED) != 0)) {
        return FL_MAP_SHARED;
    }
    return is_file ? FL_MAP_FILE : FL_MAP_ANON;
}

void fl_processes_clear(struct fl_processes *all)
{
    for (size_t i = 0; i < all->count; i++) {
        fl_process_exec(all->process[i]);
        free(all->process[i]);
    }
    free(all->process);
    memset(all, 0, sizeof(*all));
}
