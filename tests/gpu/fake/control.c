/* The table for tests: what the fake's own functions do, under its lock. */
#include "gpu/fake/internal.h"

#define DO(name, parameters, call)                                                                 \
    static void name parameters                                                                    \
    {                                                                                              \
        fake_lock();                                                                               \
        call;                                                                                      \
        fake_unlock();                                                                             \
    }
#define GET(type, name, parameters, call)                                                          \
    static type name parameters                                                                    \
    {                                                                                              \
        fake_lock();                                                                               \
        type result = call;                                                                        \
        fake_unlock();                                                                             \
        return result;                                                                             \
    }

DO(set, (enum fake_cuda_setting which, uint64_t value), fake_setting[which] = value)
DO(host_access, (const void *p, size_t len, bool write), fake_host_access(p, len, write))
DO(hide, (const char *name), fake_hide(name))
DO(capture, (void *stream, bool on), fake_capture(stream, on))
DO(capture_as, (int mode), fake_capture_as(mode))
DO(context_end, (void *context), fake_context_end(context))
GET(void *, context_new, (int device), fake_context_new(device))
GET(int, kernel,
    (void *stream, uint64_t read, size_t read_len, uint64_t write, size_t write_len,
     unsigned char fill),
    fake_kernel(stream, read, read_len, write, write_len, fill))
GET(bool, holds, (uint64_t address, size_t len, unsigned char value),
    fake_holds(address, len, value))
GET(unsigned, races, (void), fake_figures.races)
GET(unsigned, violations, (void), fake_figures.violations)
GET(const char *, report, (void), fake_figures.report)
GET(uint64_t, implicit_syncs, (void), fake_figures.implicit_syncs)
GET(uint64_t, pageable_copies, (void), fake_figures.pageable_copies)
GET(uint64_t, copies, (void), fake_figures.copies)
GET(size_t, used, (int device), fake_used(device))
GET(unsigned, retained, (int device), fake_retained(device))
GET(size_t, registered, (void), fake_figures.registered)
GET(unsigned, live, (void), fake_figures.live)
GET(bool, refused, (void), fake_refused())
GET(bool, knows_frames, (void), fake_knows_frames())

FAKE_EXPORT extern const struct fake_cuda fake_cuda;
const struct fake_cuda fake_cuda = {.set = set,
                                    .kernel = kernel,
                                    .host_access = host_access,
                                    .holds = holds,
                                    .races = races,
                                    .violations = violations,
                                    .report = report,
                                    .implicit_syncs = implicit_syncs,
                                    .pageable_copies = pageable_copies,
                                    .copies = copies,
                                    .retained = retained,
                                    .used = used,
                                    .registered = registered,
                                    .live = live,
                                    .refused = refused,
                                    .hide = hide,
                                    .capture = capture,
                                    .capture_as = capture_as,
                                    .context_new = context_new,
                                    .context_end = context_end,
                                    .knows_frames = knows_frames,
                                    .reset = fake_reset,
                                    .schedule = fake_schedule_from,
                                    .calls = fake_calls,
                                    .refuse = fake_refuse,
                                    .amid = fake_amid};
