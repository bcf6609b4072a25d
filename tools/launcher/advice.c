/* What stands in the way of CMD being served, and what would make it be served better. */
#include "launcher/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void advise(struct fl_check *c, bool holds, const char *text)
{
    if (holds && c->nadvice < FL_ADVICE) {
        c->advice[c->nadvice++] = text;
    }
}

static const char *value_of(const struct fl_check *c, const char *name)
{
    for (unsigned i = 0; i < c->probe.noptions; i++) {
        if (strcmp(c->probe.option[i].name, name) == 0) {
            return c->probe.option[i].value;
        }
    }
    return "";
}

static const char *obstacle_of_target(const struct fl_target *t)
{
    if (t->kind == FL_TARGET_STATIC) {
        return "the command is static: nothing can be preloaded into it";
    }
    if (t->kind == FL_TARGET_OTHER) {
        return "the command is of another architecture";
    }
    if (t->kind == FL_TARGET_UNKNOWN) {
        return "the command is no program that can be read";
    }
    if (t->raised) {
        return "the command has raised privileges: the loader ignores LD_PRELOAD";
    }
    return t->own_malloc ? "the command has a malloc of its own, which comes first" : NULL;
}

static const char *obstacle_of(const struct fl_check *c)
{
    const char *target = c->command != NULL ? obstacle_of_target(&c->target) : NULL;

    if (target != NULL) {
        return target;
    }
    if (!c->probe.loaded) {
        return c->probe.status != 0
                   ? "a process under the library ended at once (FAULTLESS_STRICT?)"
                   : "the library was not loaded";
    }
    if (strstr(value_of(c, "FAULTLESS_DISABLE"), "all") != NULL) {
        return "FAULTLESS_DISABLE has all";
    }
    if (!c->probe.active) {
        return c->host.seccomp != 0
                   ? "a seccomp filter is there, and may kill for the library's calls"
                   : "the library has no address space for its window";
    }
    return NULL;
}

static void advise_target(struct fl_check *c)
{
    const struct fl_target *t = &c->target;

    advise(c, t->kind == FL_TARGET_STATIC && t->nown == 0, /* else it would be in vain */
           "link the command dynamically, or build it with libfaultless.so (pkg-config faultless)");
    advise(c, t->raised,
           "run it without set-user-ID and file capabilities, or link it to the library");
    advise(c, t->kind == FL_TARGET_DYNAMIC && t->own_malloc,
           "build the command without its own allocator (or sanitizer)");
}

static void advise_method(struct fl_check *c)
{
    const struct fl_host_calls *calls = &c->host.calls;
    const char *off = value_of(c, "FAULTLESS_DISABLE");

    advise(c, strstr(off, "uffd") != NULL || strstr(off, "move") != NULL,
           "FAULTLESS_DISABLE without uffd and move: pages move without a copy");
    advise(c, calls->uffd == ENOSYS || calls->uffd_move == ENOSYS,
           "Linux 6.8 or later (UFFDIO_MOVE): huge pages move without a copy and without maps");
    advise(c, calls->uffd == EPERM || calls->uffd == EACCES,
           "let userfaultfd(2) through the sandbox's filter: huge pages move without maps");
    advise(c, calls->uffd == 0 && calls->uffd_all != 0,
           "sysctl vm.unprivileged_userfaultfd=1, or access to /dev/userfaultfd: needed by "
           "FAULTLESS_NUMA=first-touch and to fill new memory ahead of touches");
    advise(c, calls->populate != 0,
           "Linux 5.14 or later, or a sandbox that allows MADV_POPULATE_WRITE: memory is filled in "
           "one call");
    advise(c, calls->uring == EPERM || calls->uring == EACCES,
           "sysctl kernel.io_uring_disabled=0, or io_uring through the sandbox's filter: large "
           "blocks are filled by several CPUs without threads");
}

static void advise_memory(struct fl_check *c)
{
    const struct fl_host *h = &c->host;
    const struct fl_host_memory *m = &h->memory;

    advise(c, strcmp(h->thp, "never") == 0 || h->thp[0] == '\0',
           "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root): huge pages; "
           "else FAULTLESS_THP=collapse");
    advise(c, h->thp_refused,
           "a start without PR_SET_THP_DISABLE: this process has huge pages switched off, or what "
           "started it has");
    advise(c, m->as != FL_UNLIMITED || m->data != FL_UNLIMITED || m->overcommit == 2,
           "ulimit -v and -d unlimited, vm.overcommit_memory 0 or 1: else little free memory is "
           "kept, for its maps count");
    advise(c, m->cgroup != FL_UNLIMITED && m->cgroup < (uint64_t)1 << 30,
           "a memory limit of a GiB or more for the control group: little can be kept below");
}

/* What the library complained of. */
static void advise_options(struct fl_check *c)
{
    for (unsigned i = 0; i < c->probe.nnotes; i++) {
        const char *note = c->probe.note[i];
        advise(c,
               strstr(note, " is not understood") != NULL ||
                   strstr(note, " is not an option") != NULL ||
                   strstr(note, " is out of range") != NULL || strstr(note, " is not used") != NULL,
               note);
    }
}

void fl_check_judge(struct fl_check *c)
{
    c->nadvice = 0;
    c->obstacle = obstacle_of(c);
    if (c->command != NULL) {
        advise_target(c);
    }
    advise_method(c);
    advise_memory(c);
    advise_options(c);
}
