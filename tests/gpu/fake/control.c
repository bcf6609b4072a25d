/* The table for tests. */
#include "gpu/fake/internal.h"

static void set(enum fake_cuda_setting which, uint64_t value)
{
    fake_lock();
    fake_setting[which] = value;
    fake_unlock();
}

#define LOCKED(type, call)                                                                         \
    fake_lock();                                                                                   \
    type value = call;                                                                             \
    fake_unlock();                                                                                 \
    return value

#define GET(type, name, call)                                                                      \
    static type name(void)                                                                         \
    {                                                                                              \
        LOCKED(type, call);                                                                        \
    }

static unsigned step(void *stream, unsigned n)
{
    LOCKED(unsigned, fake_step(stream, n));
}
static unsigned pending(void *stream)
{
    LOCKED(unsigned, fake_pending(stream));
}
static int kernel(void *stream, uint64_t read, size_t read_len, uint64_t write, size_t write_len,
                  unsigned char fill)
{
    LOCKED(int, fake_kernel(stream, read, read_len, write, write_len, fill));
}
static void host_access(const void *p, size_t len, bool write)
{
    fake_lock();
    fake_host_access(p, len, write);
    fake_unlock();
}
static bool holds(uint64_t address, size_t len, unsigned char value_wanted)
{
    LOCKED(bool, fake_holds(address, len, value_wanted));
}
GET(unsigned, races, fake_figures.races)
GET(unsigned, violations, fake_figures.violations)
static const char *report(void)
{
    return fake_figures.report;
}
GET(uint64_t, implicit_syncs, fake_figures.implicit_syncs)
GET(uint64_t, pageable_copies, fake_figures.pageable_copies)
GET(uint64_t, copies, fake_figures.copies)
static size_t used(int device)
{
    LOCKED(size_t, fake_used(device));
}
static unsigned retained(int device)
{
    LOCKED(unsigned, fake_retained(device));
}
GET(size_t, registered, fake_registered())
GET(unsigned, live, fake_stream_live() + fake_memory_live() + fake_host_live())
GET(bool, failed, fake_refused())
static void hide(const char *name)
{
    fake_lock();
    fake_hide(name);
    fake_unlock();
}
static void capture(void *stream, bool on)
{
    fake_lock();
    fake_capture(stream, on);
    fake_unlock();
}
static void capture_as(int mode)
{
    fake_lock();
    fake_capture_as(mode);
    fake_unlock();
}
static void *context_new(int device)
{
    LOCKED(void *, fake_context_new(device));
}
static void context_end(void *context)
{
    fake_lock();
    fake_context_end(context);
    fake_unlock();
}
GET(bool, knows_frames, fake_knows_frames())

FAKE_EXPORT extern const struct fake_cuda fake_cuda;
const struct fake_cuda fake_cuda = {
    .reset = fake_reset,
    .set = set,
    .schedule = fake_schedule_from,
    .step = step,
    .pending = pending,
    .kernel = kernel,
    .host_access = host_access,
    .holds = holds,
    .races = races,
    .violations = violations,
    .report = report,
    .calls = fake_calls,
    .implicit_syncs = implicit_syncs,
    .pageable_copies = pageable_copies,
    .copies = copies,
    .retained = retained,
    .used = used,
    .registered = registered,
    .live = live,
    .refuse = fake_refuse,
    .refused = failed,
    .hide = hide,
    .capture = capture,
    .capture_as = capture_as,
    .context_new = context_new,
    .context_end = context_end,
    .amid = fake_amid,
    .knows_frames = knows_frames,
};
