/* The table of jobs: which is due, and when the next one is. */
#include "uffd/internal.h"

uint64_t fl_worker_decay(struct fl_region *r)
{
    return fl_region_tick(r, FL_DECAY_TICKS) ? FL_JOB_DELAY : FL_JOB_IDLE;
}

void fl_worker_add(struct fl_worker *w, uint64_t (*run)(struct fl_region *r), uint64_t delay_ns)
{
    if (w->njobs == FL_WORKER_JOBS) {
        fl_fatal("too many jobs for fl-uffd");
    }
    w->job[w->njobs++] = (struct fl_job){run, delay_ns, FL_JOB_IDLE};
}

void fl_worker_set_delay(struct fl_worker *w, uint64_t (*run)(struct fl_region *r),
                         uint64_t delay_ns)
{
    for (struct fl_job *j = w->job; j < w->job + w->njobs; j++) {
        if (j->run == run) {
            atomic_store(&j->delay_ns, delay_ns);
        }
    }
}

uint64_t fl_jobs_later(uint64_t now, uint64_t in)
{
    return in < FL_JOB_IDLE - now ? now + in : FL_JOB_IDLE;
}

void fl_jobs_forget(struct fl_worker *w)
{
    for (struct fl_job *j = w->job; j < w->job + w->njobs; j++) {
        j->due_ns = FL_JOB_IDLE;
    }
}

void fl_jobs_call(struct fl_worker *w)
{
    uint64_t now = fl_sys.now_ns();

    for (struct fl_job *j = w->job; j < w->job + w->njobs; j++) {
        uint64_t due = fl_jobs_later(now, atomic_load(&j->delay_ns));
        j->due_ns = due < j->due_ns ? due : j->due_ns;
    }
}

uint64_t fl_jobs_run(struct fl_worker *w)
{
    uint64_t next = FL_JOB_IDLE;

    for (struct fl_job *j = w->job; j < w->job + w->njobs; j++) {
        if (j->due_ns <= fl_sys.now_ns()) {
            bool is_off = atomic_load(&j->delay_ns) == FL_JOB_IDLE;
            uint64_t in = is_off ? FL_JOB_IDLE : j->run(w->region);
            in = in == FL_JOB_DELAY ? atomic_load(&j->delay_ns) : in;
            j->due_ns = in == FL_JOB_IDLE ? FL_JOB_IDLE : fl_jobs_later(fl_sys.now_ns(), in);
        }
        next = j->due_ns < next ? j->due_ns : next;
    }
    return next;
}
