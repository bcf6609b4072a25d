/* The clock, and on which node this runs, by the kernel's own functions in the vDSO: no system
 * call, and not by libc's names, which wrappers have too (faketime's clock may stand still).
 * Source: vdso(7). */
#include "sys/internal.h"

#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include <link.h>

#if defined(__aarch64__)
#define CLOCK "__kernel_clock_gettime"
#define GETCPU "" /* there is none */
#else
#define CLOCK "__vdso_clock_gettime"
#define GETCPU "__vdso_getcpu"
#endif

static long call_clock(int which, struct timespec *out)
{
    return fl_call(SYS_clock_gettime, which, out);
}

static long call_getcpu(unsigned *cpu, unsigned *node, void *unused)
{
    return fl_call(SYS_getcpu, cpu, node, unused);
}

/* NULL: not looked for. Each thread that looks finds the same. */
typedef long tell_time(int which, struct timespec *out);
typedef long tell_place(unsigned *cpu, unsigned *node, void *unused);
static tell_time *_Atomic by_time;
static tell_place *_Atomic by_place;

static void *find(const char *name)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells an address */
    const ElfW(Ehdr) *file = (const void *)fl_sys_auxval(AT_SYSINFO_EHDR);
    const ElfW(Phdr) *h = file != NULL ? (const void *)((const char *)file + file->e_phoff) : NULL;
    const ElfW(Phdr) *load = NULL, *dynamic = NULL;
    struct fl_object o;

    for (unsigned i = 0; file != NULL && i < file->e_phnum; i++, h++) {
        load = h->p_type == PT_LOAD && load == NULL ? h : load;
        dynamic = h->p_type == PT_DYNAMIC ? h : dynamic;
    }
    if (load == NULL || dynamic == NULL) {
        return NULL;
    }
    uintptr_t base = (uintptr_t)file + load->p_offset - load->p_vaddr;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): likewise */
    const void *section = (const void *)(base + dynamic->p_vaddr);
    return fl_object_read(&o, base, section) ? fl_object_find(&o, name, NULL) : NULL;
}

/* Both at the first call of either: the clock is read at boot, and what comes later has less of a
 * stack. */
static FL_COLD void look_up(void)
{
    tell_time *time;
    tell_place *place;

    *(void **)(void *)&time = find(CLOCK);
    *(void **)(void *)&place = find(GETCPU);
    atomic_store_explicit(&by_time, time != NULL ? time : call_clock, memory_order_relaxed);
    atomic_store_explicit(&by_place, place != NULL ? place : call_getcpu, memory_order_relaxed);
}

void fl_linux_clock(int which, struct timespec *out)
{
    tell_time *f = atomic_load_explicit(&by_time, memory_order_relaxed);

    if (FL_UNLIKELY(f == NULL)) {
        look_up();
        f = atomic_load_explicit(&by_time, memory_order_relaxed);
    }
    (void)f(which, out);
}

int fl_linux_getcpu(unsigned *out_node)
{
    tell_place *f = atomic_load_explicit(&by_place, memory_order_relaxed);
    unsigned cpu;

    if (FL_UNLIKELY(f == NULL)) {
        look_up();
        f = atomic_load_explicit(&by_place, memory_order_relaxed);
    }
    return (int)f(&cpu, out_node, NULL);
}
