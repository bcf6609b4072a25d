/* The fake kernel's half with memory: what is mapped, and the slots that change or fill it. */
#include "unit/fake_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Adds `r`, which overlaps nothing in the list; joins it with neighbours of the same kind. */
static void add_map(struct fl_range r, struct fake_map as)
{
    for (size_t i = 0; i < fake.nmap;) {
        struct fake_map m = fake.map[i];
        if (m.usable == as.usable && m.no_fork == as.no_fork && m.no_dump == as.no_dump &&
            (fl_range_end(m.range) == r.base || fl_range_end(r) == m.range.base)) {
            r = (struct fl_range){m.range.base < r.base ? m.range.base : r.base,
                                  m.range.len + r.len};
            fake.map[i] = fake.map[--fake.nmap];
            i = 0;
        } else {
            i++;
        }
    }
    if (fake.nmap == FAKE_MAPS) {
        abort(); /* the test maps more pieces than it should */
    }
    as.range = r;
    fake.map[fake.nmap++] = as;
}

/* Takes `r` out of the list; what sticks out of it stays. Returns the bytes taken out. */
static size_t remove_map(struct fl_range r)
{
    uintptr_t end = fl_range_end(r);
    size_t removed = 0;

    for (size_t i = 0; i < fake.nmap;) {
        struct fake_map m = fake.map[i];
        uintptr_t m_end = fl_range_end(m.range);
        if (m_end <= r.base || m.range.base >= end) {
            i++;
            continue;
        }
        fake.map[i] = fake.map[--fake.nmap];
        removed += m.range.len;
        if (m.range.base < r.base) {
            add_map((struct fl_range){m.range.base, r.base - m.range.base}, m);
            removed -= r.base - m.range.base;
        }
        if (m_end > end) {
            add_map((struct fl_range){end, m_end - end}, m);
            removed -= m_end - end;
        }
        i = 0;
    }
    return removed;
}

enum change { ADD_RESERVED, ADD_USABLE, REMOVE, BECOME_USABLE, BECOME_RESERVED };

static void change_map(struct fl_range r, enum change how)
{
    if (fake.quiet) {
        return;
    }
    fake_enter();
    size_t removed = how >= REMOVE ? remove_map(r) : 0;
    if (how >= REMOVE && removed != r.len && !(how == REMOVE && fake.holes)) {
        abort(); /* a range that is not reserved is given back or made usable */
    }
    if (how != REMOVE) {
        add_map(r, (struct fake_map){.usable = how != ADD_RESERVED && how != BECOME_RESERVED});
    }
    fake_leave();
}

static bool is_too_much(size_t len)
{
    return !fake.quiet && (len > fake.commit_max ||
                           (fake.charge_max != SIZE_MAX && fake_usable() + len > fake.charge_max));
}

static int fake_reserve(size_t len, uintptr_t *out_base)
{
    int rc = fake_scripted(FAKE_RESERVE);
    struct fl_range r = {0, len};

    if (rc == 0 && len > fake.reserve_max) {
        rc = -ENOMEM;
    } else if (rc == 0 && fake.reserve_skip != 0) {
        fake.reserve_skip--;
    } else if (rc == 0 && fake.reserve_refuse != 0) {
        fake.reserve_refuse--;
        rc = -ENOMEM;
    }
    if (rc == 0 && (rc = fl_sys_linux.reserve(len, out_base)) == 0) {
        r.base = *out_base;
        change_map(r, ADD_RESERVED);
    }
    return fake_note(FAKE_RESERVE, r, rc);
}

static void tell(void (*hook)(struct fl_range), struct fl_range r)
{
    if (hook != NULL) {
        hook(r);
    }
}

static int fake_map_at(struct fl_range r)
{
    int rc = fake_scripted(FAKE_MAP_AT);

    tell(fake.on_map, r);
    if (rc == 0) {
        rc = fake.no_quiet_addresses ? -EEXIST
             : is_too_much(r.len)    ? -ENOMEM
                                     : fl_sys_linux.map_at(r);
    }
    if (rc == 0) {
        change_map(r, ADD_USABLE);
    }
    return fake_note(FAKE_MAP_AT, r, rc);
}

static int scripted_purge(enum fake_slot slot)
{
    int rc = fake_scripted(slot);

    if (fake.on_purge != NULL) {
        fake.on_purge();
    }
    return rc;
}

static int fake_unmap(struct fl_range r)
{
    int rc = scripted_purge(FAKE_UNMAP);

    if (rc == 0 && (rc = fl_sys_linux.unmap(r)) == 0) {
        change_map(r, REMOVE);
    }
    return fake_note(FAKE_UNMAP, r, rc);
}

static int fake_commit(struct fl_range r)
{
    int rc = fake_scripted(FAKE_COMMIT);

    tell(fake.on_map, r);
    rc = rc != 0 ? rc : is_too_much(r.len) ? -ENOMEM : fl_sys_linux.commit(r);
    if (rc == 0) {
        change_map(r, BECOME_USABLE);
    }
    return fake_note(FAKE_COMMIT, r, rc);
}

static int fake_decommit(struct fl_range r)
{
    int rc = scripted_purge(FAKE_DECOMMIT);

    if (rc == 0 && (rc = fl_sys_linux.decommit(r)) == 0) {
        change_map(r, BECOME_RESERVED);
    }
    return fake_note(FAKE_DECOMMIT, r, rc);
}

static bool is_flag(enum fl_sys_advice advice)
{
    return advice == FL_ADVICE_NO_FORK || advice == FL_ADVICE_FORK || advice == FL_ADVICE_NO_DUMP ||
           advice == FL_ADVICE_DUMP;
}

static struct fake_map flagged(struct fake_map m, enum fl_sys_advice advice)
{
    bool fork = advice == FL_ADVICE_NO_FORK || advice == FL_ADVICE_FORK;

    m.no_fork = fork ? advice == FL_ADVICE_NO_FORK : m.no_fork;
    m.no_dump = fork ? m.no_dump : advice == FL_ADVICE_NO_DUMP;
    return m;
}

/* The other flags of each map stay. */
static void flag_maps(struct fl_range r, enum fl_sys_advice advice)
{
    if (fake.quiet) {
        return;
    }
    fake_enter();
    for (size_t i = 0; i < fake.nmap;) {
        struct fake_map m = fake.map[i], as = flagged(m, advice);
        struct fl_range part = fl_range_common(m.range, r);
        if (part.len == 0 || (as.no_fork == m.no_fork && as.no_dump == m.no_dump)) {
            i++;
            continue;
        }
        (void)remove_map(part);
        add_map(part, as);
        i = 0;
    }
    fake_leave();
}

/* A refusal may come halfway: then what was advised before stays so. Where some of it is not mapped
 * the rest is advised, too. */
static int advise_flag(struct fl_range r, enum fl_sys_advice advice, int rc)
{
    struct fl_range part = {r.base, rc == 0 ? r.len : fl_align_down(r.len / 2, fl_page.base)};
    int real = part.len != 0 ? fl_sys_linux.advise(part, advice) : 0;

    if (real == 0 || real == -ENOMEM) {
        flag_maps(part, advice);
    }
    return rc != 0 ? rc : real;
}

/* Page by page, until one is refused. */
static int collapse(struct fl_range r, int rc)
{
    for (uintptr_t at = r.base; rc == 0 && at < fl_range_end(r); at += fl_page.huge) {
        for (size_t i = 0; rc == 0 && i < fake.npages; i++) {
            if (fake.page[i].base == at && (rc = fake.page[i].refusal) == 0) {
                fake.page[i] = fake.page[--fake.npages];
            }
        }
    }
    return rc;
}

static int fake_advise(struct fl_range r, enum fl_sys_advice advice)
{
    /* What takes back an advice needs no map more: the kernel does not refuse it. */
    bool granted = advice == FL_ADVICE_FORK || advice == FL_ADVICE_DUMP ||
                   (advice == FL_ADVICE_NO_HUGE && fake.grants_no_huge);
    int rc = granted ? 0 : fake_scripted(FAKE_ADVISE);
    if (is_flag(advice)) {
        rc = advise_flag(r, advice, rc);
    } else if (advice == FL_ADVICE_COLLAPSE) {
        rc = collapse(r, rc);
    } else if (rc == 0) {
        rc = fl_sys_linux.advise(r, advice);
    }
    return fake_note_advice(FAKE_ADVISE, r, rc, advice);
}

static int fake_populate(struct fl_range r)
{
    int rc = fake_scripted(FAKE_POPULATE);

    tell(fake.on_populate, r);
    if (rc == 0 && !fake.pretend_populate) {
        rc = fl_sys_linux.populate(r);
    }
    return fake_note(FAKE_POPULATE, r, rc);
}

/* Helpers have no part in what a test of the layers above judges. */
static int fake_populate_shared(struct fl_range r, unsigned helpers)
{
    atomic_fetch_add(&fake.shared, 1);
    atomic_store(&fake.helpers, helpers);
    return fake_populate(r);
}

static int fake_lazy_free(struct fl_range r)
{
    int rc = fake_scripted(FAKE_LAZY_FREE);

    tell(fake.on_lazy_free, r);
    return fake_note(FAKE_LAZY_FREE, r, rc != 0 ? rc : fl_sys_linux.lazy_free(r));
}

/* Which base pages of `r`, at most a huge page, are in memory. */
static void look_at(struct fl_range r, uint64_t *entry)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t n = r.len >> fl_page.shift, size = n * sizeof *entry;

    if (fd < 0 || pread(fd, entry, size, (off_t)((r.base >> fl_page.shift) * sizeof *entry)) !=
                      (ssize_t)size) {
        abort();
    }
    close(fd);
}

/* As UFFDIO_MOVE does it: by base pages, past holes, until one is in the way. */
static int move_some(struct fl_range from, uintptr_t to, size_t *out_moved)
{
    static const uint64_t there = (uint64_t)3 << 62; /* present, or swapped out */
    static const size_t step = (size_t)2 << 20;
    uint64_t source[512], target[512];
    uintptr_t begin = fl_align_down(to, step), end = fl_align_up(to + from.len, step);
    int rc = 0;

    (void)madvise((void *)begin, end - begin, MADV_NOHUGEPAGE); /* a fault brings one page */
    for (size_t done = 0; done < from.len && rc == 0; done += fl_page.base) {
        size_t i = done % step >> fl_page.shift;
        if (i == 0) {
            look_at((struct fl_range){from.base + done, fl_min(step, from.len - done)}, source);
            look_at((struct fl_range){to + done, fl_min(step, from.len - done)}, target);
        }
        if ((source[i] & there) == 0) {
            *out_moved += fl_page.base;
        } else if ((target[i] & there) != 0) {
            rc = -EEXIST;
        } else {
            memcpy((void *)(to + done), (const void *)(from.base + done), fl_page.base);
            *out_moved += fl_page.base;
        }
    }
    (void)madvise((void *)from.base, *out_moved, MADV_DONTNEED);
    return *out_moved != 0 && rc != 0 ? -EAGAIN : rc;
}

static int fake_move_begin(struct fl_range to, int *out_fd)
{
    int rc = fake_scripted(FAKE_MOVE_BEGIN);

    *out_fd = 1000;
    fake.moves_open += rc == 0;
    return fake_note(FAKE_MOVE_BEGIN, to, rc);
}

static int fake_move_pages(int fd, struct fl_range from, uintptr_t to, size_t *out_moved)
{
    size_t most = fake.move_most != 0 ? fl_min(fake.move_most, from.len) : from.len;
    int rc = fd == 1000 ? fake_scripted(FAKE_MOVE) : -EBADF;

    *out_moved = 0;
    if (rc == 0) {
        int wish = fake.on_move != NULL ? fake.on_move(from, to, &most) : 0;
        most = wish != 0 && most == from.len ? 0 : fl_min(most, from.len);
        rc = most != 0 ? move_some((struct fl_range){from.base, most}, to, out_moved) : wish;
        rc = rc == 0 && most < from.len ? -EAGAIN : rc;
    }
    return fake_note(FAKE_MOVE, from, rc);
}

static void fake_move_end(int fd, struct fl_range to)
{
    (void)fd;
    (void)to;
    fake.moves_open--;
}

/* -EFAULT leaves nothing at the target, as kernels before 6.17 do. The map's advice comes along. */
static int fake_remap(struct fl_range from, uintptr_t to)
{
    struct fl_range target = {to, from.len};
    size_t most = from.len;
    int rc = fake_scripted(FAKE_REMAP);

    rc = rc == 0 && fake.on_move != NULL ? fake.on_move(from, to, &most) : rc;
    bool no_fork = fake_kept_from_child(from) != 0, no_dump = fake_hidden(from) != 0;
    if (rc == 0 && (rc = fl_sys_linux.remap(from, to)) == 0) {
        change_map(from, REMOVE);
        change_map(target, BECOME_USABLE);
        flag_maps(target, no_fork ? FL_ADVICE_NO_FORK : FL_ADVICE_FORK);
        flag_maps(target, no_dump ? FL_ADVICE_NO_DUMP : FL_ADVICE_DUMP);
    } else if (rc == -EFAULT && fl_sys_linux.unmap(target) == 0) {
        change_map(target, REMOVE);
    }
    return fake_note(FAKE_REMAP, from, rc);
}

static const struct fake_page *page_at(uintptr_t addr)
{
    for (size_t i = 0; i < fake.npages; i++) {
        if (addr - fake.page[i].base < fl_page.huge) {
            return &fake.page[i];
        }
    }
    return NULL;
}

static bool is_split(uintptr_t addr)
{
    const struct fake_page *p = page_at(addr);

    return p != NULL && !p->whole && p->present != 0;
}

static int fake_find_split(struct fl_range r, struct fl_range *out)
{
    uintptr_t at = r.base, end = fl_range_end(r);
    int rc = fake_scripted(FAKE_FIND_SPLIT);

    while (at < end && !is_split(at)) {
        at += fl_page.huge;
    }
    *out = (struct fl_range){at, 0};
    while (at < end && is_split(at)) {
        at += fl_page.huge;
    }
    out->len = at - out->base;
    return fake_note(FAKE_FIND_SPLIT, r, rc != 0 ? rc : out->len == 0 ? -ENOENT : 0);
}

static int fake_survey(struct fl_range r, size_t *out_present, size_t *out_own)
{
    int rc = fake_scripted(FAKE_SURVEY);

    *out_present = *out_own = 0;
    for (size_t done = 0; rc == 0 && done < r.len; done += fl_page.base) {
        const struct fake_page *p = page_at(r.base + done);
        size_t into = (r.base + done) & (fl_page.huge - 1);
        bool present = p == NULL || into < p->present;
        *out_present += present ? fl_page.base : 0;
        /* its own pages are the last of those that are present */
        *out_own += present && (p == NULL || into >= p->present - p->own) ? fl_page.base : 0;
    }
    tell(fake.on_survey, r);
    return fake_note(FAKE_SURVEY, r, rc);
}

static int fake_resident(struct fl_range r, size_t *out_bytes)
{
    int rc = fake_scripted(FAKE_RESIDENT);

    *out_bytes = 0;
    return fake_note(FAKE_RESIDENT, r, rc != 0 ? rc : fl_sys_linux.resident(r, out_bytes));
}

static int fake_name(struct fl_range r, const char *name)
{
    (void)name;
    return fake_note(FAKE_NAME, r, fake_scripted(FAKE_NAME));
}

void fake_map_forked(void)
{
    for (size_t i = 0; i < fake.nmap;) {
        if (fake.map[i].no_fork) {
            fake.map[i] = fake.map[--fake.nmap];
        } else {
            i++;
        }
    }
}

void fake_map_slots(struct fl_sys *table)
{
    table->reserve = fake_reserve;
    table->map_at = fake_map_at;
    table->unmap = fake_unmap;
    table->commit = fake_commit;
    table->decommit = fake_decommit;
    table->protect = fl_sys_linux.protect;
    table->advise = fake_advise;
    table->populate = fake_populate;
    table->populate_shared = fake_populate_shared;
    table->lazy_free = fake_lazy_free;
    table->move_begin = fake_move_begin;
    table->move_pages = fake_move_pages;
    table->move_end = fake_move_end;
    table->remap = fake_remap;
    table->find_split = fake_find_split;
    table->survey = fake_survey;
    table->resident = fake_resident;
    table->name = fake_name;
}
