/* What three models asked for while they were trained (traces/record.py), asked of the pools: they
 * hold less than PyTorch's algorithm (traces/peer). */
#include "gpu/pool_fixture.h"

enum { EVENTS_MOST = 1 << 15, BLOCKS_MOST = 1 << 16, STEPS_MOST = 16 };

/* One line a step, the first for what is there before; see record.py. */
struct trace {
    int64_t event[EVENTS_MOST]; /* above 0: so many bytes; below: the block of so long ago */
    size_t from[STEPS_MOST + 1], steps;
};

static struct trace trace;

static void read_trace(const char *name)
{
    char path[512];
    size_t n = 0;
    long event;
    int c;

    (void)snprintf(path, sizeof path, "%s/%s", FL_TRACES, name);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    trace.steps = 0;
    trace.from[0] = 0;
    while (fscanf(f, "%ld", &event) == 1) {
        assert_true(n < EVENTS_MOST && event != 0);
        trace.event[n++] = event;
        if ((c = fgetc(f)) == '\n') {
            assert_true(trace.steps < STEPS_MOST);
            trace.from[++trace.steps] = n;
        }
    }
    assert_int_equal(fclose(f), 0);
    assert_true(trace.steps > 3 && n > 2000);
}

struct run {
    struct fl_gpu_pool *pool;
    uint64_t at[BLOCKS_MOST];
    size_t n;
    uint64_t calls[64]; /* of the driver for memory, up to the end of each step */
    size_t steps;
};

static struct run run;

static void one_event(int64_t event)
{
    size_t id = event > 0 ? run.n++ : run.n + (size_t)event;

    assert_true(id < BLOCKS_MOST);
    if (event > 0) {
        run.at[id] = pool_take(run.pool, (size_t)event, NULL);
    } else {
        pool_give(run.pool, run.at[id], NULL);
        run.at[id] = 0;
    }
}

static void one_step(size_t step)
{
    for (size_t i = trace.from[step]; i < trace.from[step + 1]; i++) {
        one_event(trace.event[i]);
    }
    struct fl_gpu_pool_stats s = pool_stats(run.pool);
    run.calls[run.steps++] = s.driver_allocs + s.driver_frees;
}

/* All steps, and the last but one (the last is not whole) `more` times again. */
static void replay(struct fl_gpu_pool *p, size_t more)
{
    run = (struct run){.pool = p};
    for (size_t i = 0; i + 1 < trace.steps; i++) {
        one_step(i);
    }
    for (size_t i = 0; i < more; i++) {
        one_step(trace.steps - 2);
    }
}

static void end(struct fl_gpu_pool *p)
{
    for (size_t i = 0; i < run.n; i++) {
        if (run.at[i] != 0) {
            pool_give(p, run.at[i], NULL);
        }
    }
    pool_end(p);
}

/* What the pool holds at most, in thousandths of what PyTorch's would hold. */
static unsigned of_peer(const char *name, size_t peer)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.chunk = 0);

    read_trace(name);
    replay(p, 6);
    struct fl_gpu_pool_stats s = pool_stats(p);
    print_message("%s: %lu MiB, PyTorch's %zu\n", name, (unsigned long)(s.held_peak_bytes >> 20),
                  peer >> 20);
    end(p);
    return (unsigned)(1000 * s.held_peak_bytes / peer);
}

CASE(the_pool_holds_less_than_pytorch)
{
    assert_in_range(of_peer("transformer", 161480704), 1, 950);
    assert_int_equal(run.calls[3], run.calls[run.steps - 1]); /* no call after the third step */
    assert_in_range(of_peer("cnn", 234881024), 1, 950);
    assert_int_equal(run.calls[3], run.calls[run.steps - 1]);
    assert_in_range(of_peer("lengths", 249561088), 1, 950);
    assert_int_equal(run.calls[trace.steps - 2], run.calls[run.steps - 1]); /* all were seen */
}

GPU_MAIN("test_gpu_traces")
