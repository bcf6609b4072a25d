/* Events of the trace in Chrome's words. */
#include "gpu/trace/trace_event.h"

#include "stats/stats.h"

static void append_track(struct fl_text *name, const struct fl_gpu_event *e, const char *what)
{
    fl_text_str(name, e->device < 0 ? "host" : "GPU");
    if (e->device >= 0) {
        fl_text_u64(name, (uint64_t)e->device);
    }
    fl_text_str(name, e->target == FL_GPU_PINNED ? " pinned " : " ");
    fl_text_str(name, what);
    if (e->number > 1) {
        fl_text_str(name, " ");
        fl_text_u64(name, e->number);
    }
}

static void put_counters(struct fl_text *out, const struct fl_gpu_event *e, int pid,
                         const char *what, const struct fl_chrome_arg *arg, size_t args)
{
    char text[64];
    struct fl_text name = fl_text_on(text, sizeof text);

    append_track(&name, e, what);
    fl_chrome_event(out,
                    &(struct fl_chrome_event){.phase = 'C',
                                              .name = text,
                                              .pid = pid,
                                              .tid = e->tid,
                                              .at_ns = e->at_ns,
                                              .arg = arg,
                                              .args = args},
                    false);
}

static void put_figures(struct fl_text *out, const struct fl_gpu_event *e, int pid)
{
    const struct fl_chrome_arg held[] = {{"Occupied Pool Size", NULL, (int64_t)e->value[0]},
                                         {"Free Pool Size", NULL, (int64_t)e->value[1]}},
                               served[] = {
                                   {"Memory Allocated from Pool", NULL, (int64_t)e->value[2]},
                                   {"Memory Allocated from CUDA API", NULL, (int64_t)e->value[3]}};

    put_counters(out, e, pid, "pool", held, 2);
    put_counters(out, e, pid, "served", served, 2);
}

static void put_copies(struct fl_text *out, const struct fl_gpu_event *e, int pid)
{
    const struct fl_chrome_arg arg[] = {{"Copies", NULL, (int64_t)e->value[0]},
                                        {"Stalls", NULL, (int64_t)e->value[2]}},
                               bytes[] = {{"Copied Bytes", NULL, (int64_t)e->value[1]}};

    put_counters(out, e, pid, "copies", arg, 2);
    put_counters(out, e, pid, "copied", bytes, 1);
}

void fl_gpu_event_put(struct fl_text *out, const struct fl_gpu_event *e, int pid)
{
    const struct fl_chrome_arg call[] = {{"bytes", NULL, (int64_t)e->value[0]},
                                         {"result", NULL, e->rc}},
                               instant[] = {{"device", NULL, e->device},
                                            {"value", NULL, (int64_t)e->value[0]}},
                               thread[] = {{"name", e->thread, 0}};
    struct fl_chrome_event c = {.name = e->name,
                                .pid = pid,
                                .tid = e->tid,
                                .at_ns = e->at_ns,
                                .lasts_ns = e->lasts_ns,
                                .args = 2};

    switch (e->kind) {
    case FL_GPU_EVENT_FIGURES:
        put_figures(out, e, pid);
        return;
    case FL_GPU_EVENT_COPIES:
        put_copies(out, e, pid);
        return;
    case FL_GPU_EVENT_CALL:
        c.phase = 'X';
        c.arg = call;
        break;
    case FL_GPU_EVENT_INSTANT:
        c.phase = 'i';
        c.arg = instant;
        break;
    case FL_GPU_EVENT_THREAD:
        c.phase = 'M';
        c.name = "thread_name";
        c.arg = thread;
        c.args = 1;
        break;
    }
    fl_chrome_event(out, &c, false);
}
