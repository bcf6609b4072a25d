/* Recorded steps as text, for people and for faultplan(1): a file a step in the folder of
 * FAULTLESS_TRACE, one line a block, `id,lower,upper,size,alignment,thread,node`, in the order of
 * the step's events. What lives on ends with the step. The thread is its number in the kernel, the
 * node the one whose memory the block was given: empty where it was given several's. */
#include "plan/context.h"

#include <unistd.h>

enum { LINE = 160, PATH = FL_OPTION_TEXTS + 64 };

static uint32_t traced[FL_CONTEXTS]; /* steps, by the place of the context. Its thread */

static void append_life(struct fl_text *t, const struct fl_record *rec, uint32_t i, pid_t tid)
{
    const struct fl_placing *placing = &fl_plan.region->zones.placing;
    const struct fl_life *life = &rec->life[i];
    uint64_t death = fl_min(__atomic_load_n(&life->death, __ATOMIC_RELAXED), rec->end);
    const uint64_t column[] = {i,          life->birth - rec->begin, death - rec->begin,
                               life->size, fl_max(life->align, 1),   (uint64_t)tid};

    for (unsigned c = 0; c < sizeof column / sizeof column[0]; c++) {
        fl_text_u64(t, column[c]);
        fl_text_str(t, ",");
    }
    if (life->node != FL_LIFE_ANY_NODE) {
        fl_text_u64(t, placing->nodes != 0 ? (uint64_t)placing->number_of(life->node) : 0);
    }
    fl_text_str(t, "\n");
}

static void append_path(struct fl_text *t, const struct fl_step_context *c)
{
    fl_assert(c->who.id != 0 && c->who.id <= FL_CONTEXTS);
    fl_text_str(t, fl_plan.config.trace);
    fl_text_str(t, "/");
    fl_text_u64(t, (uint64_t)fl_call_pid());
    fl_text_str(t, "-");
    fl_text_u64(t, c->who.id);
    fl_text_str(t, "-");
    fl_text_u64(t, traced[c->who.id - 1]);
    fl_text_str(t, ".csv");
}

void fl_trace_step(struct fl_step_context *c, const struct fl_record *rec)
{
    if (fl_sys_is_confined()) { /* no file is written, and no call made */
        return;
    }
    size_t lines = LINE * ((size_t)rec->n + 1), size = lines + PATH;
    char *buf = fl_own_map(&fl_plan.memory, size);
    pid_t tid = fl_call_tid();

    if (buf != NULL) {
        struct fl_text t = fl_text_on(buf, lines);
        char *path = buf + lines; /* the caller's stack may be small */
        struct fl_text p = fl_text_on(path, PATH);
        append_path(&p, c);
        fl_text_str(&t, "id,lower,upper,size,alignment,thread,node\n");
        for (uint32_t i = 0; i < rec->n; i++) {
            append_life(&t, rec, i, tid);
        }
        if (fl_sys.append_file(path, buf, t.len) != 0 && !fl_plan.trace_failed) {
            fl_plan.trace_failed = true;
            fl_say("the folder of FAULTLESS_TRACE cannot be written to");
        }
        traced[c->who.id - 1]++;
    }
    fl_own_unmap(&fl_plan.memory, buf, size);
}
