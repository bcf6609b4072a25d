#include "faultstat/record/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct frame {
    uint64_t reg[FL_REG_COUNT];
    const struct fl_event *fault;
    uint64_t low; /* stack pointer at the fault: where the dump begins */
};

int fl_unwinder_open(struct fl_unwinder *unwinder)
{
    memset(unwinder, 0, sizeof(*unwinder));
    unwinder->modules.began = time(NULL);
    unwinder->slot = calloc(FL_ROWS, sizeof(*unwinder->slot));
    return unwinder->slot != NULL ? 0 : -ENOMEM;
}

/* Where an address of the process lies in its file. */
static struct fl_place place_of(struct fl_unwinder *unwinder, const struct fl_process *process,
                                uint64_t addr)
{
    const struct fl_map *map = fl_process_find(process, addr);
    if (map == NULL || map->module == 0) {
        return (struct fl_place){0, addr};
    }
    if (unwinder->modules.module[map->module].is_jit) {
        return (struct fl_place){map->module, addr};
    }
    uint64_t offset = addr - map->start + map->offset;
    return (struct fl_place){map->module,
                             fl_modules_address(&unwinder->modules, map->module, offset)};
}

static struct fl_row row_of(struct fl_unwinder *unwinder, struct fl_place place)
{
    uint64_t hash = (place.address * UINT64_C(0x9e3779b97f4a7c15)) ^ ((uint64_t)place.module << 40);
    struct fl_row_slot *slot = &unwinder->slot[hash >> 49];
    if (!slot->is_used || slot->place.module != place.module ||
        slot->place.address != place.address) {
        *slot = (struct fl_row_slot){
            place, fl_modules_row(&unwinder->modules, place.module, place.address), true};
    }
    return slot->row;
}

static bool read_stack(const struct frame *frame, uint64_t addr, uint64_t *value)
{
    uint64_t at = addr - frame->low;
    if (addr < frame->low || frame->fault->stack_len < sizeof(*value) ||
        at > frame->fault->stack_len - sizeof(*value)) {
        return false;
    }
    memcpy(value, frame->fault->stack + at, sizeof(*value));
    return true;
}

/* May a word be a return address? Into generated code: any address there may. */
static bool is_return(struct fl_unwinder *unwinder, const struct fl_process *process, uint64_t word)
{
    const struct fl_map *map = fl_process_find(process, word);
    if (map == NULL || map->module == 0 || word < map->start) {
        return false;
    }
    return unwinder->modules.module[map->module].is_jit ||
           fl_modules_follows_call(&unwinder->modules, map->module,
                                   word - map->start + map->offset);
}

/* Go to the caller whose return address lies at `at`. */
static void return_from(struct frame *frame, uint64_t at, uint64_t next)
{
    frame->reg[FL_REG_SP] = at + sizeof(next);
    frame->reg[FL_REG_IP] = next;
}

/* The caller of code that nothing is known of. In this order: a frame pointer that leads to a
 * return address; one word between the stack pointer and the return address, as in Python's
 * trampolines; the nearest return address into a file, with the registers that a function of oneDNN
 * saves below it: rbx, rbp, r12 to r15. The last is a guess. */
static bool step_blind(struct fl_unwinder *unwinder, const struct fl_process *process,
                       struct frame *frame)
{
    enum { FL_WORDS = 512, FL_SAVED = 6 };
    static const uint8_t order[FL_SAVED] = {FL_REG_BX,      FL_REG_BP,      FL_REG_R12,
                                            FL_REG_R12 + 1, FL_REG_R12 + 2, FL_REG_R12 + 3};
    uint64_t word;
    uint64_t next;
    uint64_t sp = frame->reg[FL_REG_SP];
    uint64_t bp = frame->reg[FL_REG_BP];
    if (bp >= sp && read_stack(frame, bp, &word) && read_stack(frame, bp + 8, &next) &&
        is_return(unwinder, process, next)) {
        frame->reg[FL_REG_BP] = word;
        return_from(frame, bp + 8, next);
        return true;
    }
    if (read_stack(frame, sp + 8, &next) && is_return(unwinder, process, next)) {
        return_from(frame, sp + 8, next);
        return true;
    }
    for (uint64_t at = sp; at < sp + FL_WORDS * 8 && read_stack(frame, at, &next); at += 8) {
        const struct fl_map *map = fl_process_find(process, next);
        if (map == NULL || map->kind != FL_MAP_FILE || !is_return(unwinder, process, next)) {
            continue;
        }
        for (size_t i = 0; i < FL_SAVED && at >= sp + (FL_SAVED * 8); i++) {
            (void)read_stack(frame, at - (i + 1) * 8, &frame->reg[order[i]]);
        }
        return_from(frame, at, next);
        return true;
    }
    return false;
}

static bool step_by_row(struct frame *frame, const struct fl_row *row)
{
    uint64_t base = frame->reg[row->base] + (uint64_t)(int64_t)row->offset;
    uint64_t caller[FL_REG_COUNT];
    if (row->is_deref && !read_stack(frame, base, &base)) {
        return false;
    }
    memcpy(caller, frame->reg, sizeof(caller));
    for (int i = 0; i < FL_REG_COUNT; i++) {
        struct fl_saved saved = row->saved[i];
        if (saved.base >= FL_BASE_FRAME) {
            uint64_t from = saved.base == FL_BASE_FRAME ? base : frame->reg[saved.base];
            if (!read_stack(frame, from + (uint64_t)(int64_t)saved.offset, &caller[i])) {
                return false;
            }
        }
    }
    caller[FL_REG_SP] = base;
    bool is_upward = base > frame->reg[FL_REG_SP]; /* else it would go round for ever */
    memcpy(frame->reg, caller, sizeof(caller));
    return is_upward;
}

static size_t follow_chain(struct fl_unwinder *unwinder, const struct fl_process *process,
                           const struct fl_event *fault, struct fl_place place[FL_FRAMES_MOST])
{
    size_t count = 0;
    for (size_t i = 0; i < fault->chain_len && count < FL_FRAMES_MOST; i++) {
        if (fault->chain[i] < PERF_CONTEXT_MAX) { /* above: a mark of the kernel's */
            place[count] = place_of(unwinder, process, fault->chain[i] - (count != 0));
            count++;
        }
    }
    return count;
}

size_t fl_unwind(struct fl_unwinder *unwinder, const struct fl_process *process,
                 const struct fl_event *fault, struct fl_place place[FL_FRAMES_MOST], bool *is_cut)
{
    *is_cut = false;
    if (fault->reg == NULL) {
        return follow_chain(unwinder, process, fault, place);
    }
    struct frame frame = {.fault = fault};
    memcpy(frame.reg, fault->reg, sizeof(frame.reg));
    frame.low = frame.reg[FL_REG_SP];
    size_t count = 0;
    while (count < FL_FRAMES_MOST) {
        uint64_t back = count != 0; /* a call that returns to the next function's first byte */
        place[count] = place_of(unwinder, process, frame.reg[FL_REG_IP] - back);
        if (place[count].module == 0 && count > 0) {
            *is_cut = true; /* no code: the way was lost a frame before */
            return count;
        }
        bool is_jit = unwinder->modules.module != NULL &&
                      unwinder->modules.module[place[count].module].is_jit;
        struct fl_row row = row_of(unwinder, place[count]);
        count++;
        if (row.is_last) {
            return count;
        }
        if (row.is_known ? !step_by_row(&frame, &row)
                         : !is_jit || !step_blind(unwinder, process, &frame)) {
            *is_cut = true;
            return count;
        }
    }
    *is_cut = true;
    return count;
}

void fl_unwinder_close(struct fl_unwinder *unwinder)
{
    fl_modules_clear(&unwinder->modules);
    free(unwinder->slot);
    unwinder->slot = NULL;
}
