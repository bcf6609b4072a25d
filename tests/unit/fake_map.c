/* The half of the fake kernel that has memory: what is mapped, and the slots that change or fill it. */
#include "unit/fake_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Adds `r`, which overlaps nothing in the list, and joins it with its neighbours of the same kind. */
static void add_map(struct fl_range r, bool usable)
{
    for (size_t i = 0; i < fake.nmap;) {
        struct fake_map m = fake.map[i];
        if (m.usable == usable &&
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
    fake.map[fake.nmap++] = (struct fake_map){r, usable};
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
            add_map((struct fl_range){m.range.base, r.base - m.range.base}, m.usable);
            removed -= r.base - m.range.base;
        }
        if (m_end > end) {
            add_map((struct fl_range){end, m_end - end}, m.usable);
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
    if (how >= REMOVE && removed != r.len) {
        abort(); /* somebody gives back, or makes usable, what is not his */
    }
    if (how != REMOVE) {
        add_map(r, how == ADD_USABLE || how == BECOME_USABLE);
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

static int fake_map_at(struct fl_range r)
{
    int rc = fake_scripted(FAKE_MAP_AT);

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

static int fake_unmap(struct fl_range r)
{
    int rc = fake_scripted(FAKE_UNMAP);

    if (fake.on_purge != NULL) {
        fake.on_purge();
    }
    if (rc == 0 && (rc = fl_sys_linux.unmap(r)) == 0) {
        change_map(r, REMOVE);
    }
    return fake_note(FAKE_UNMAP, r, rc);
}

static int fake_commit(struct fl_range r)
{
    int rc = fake_scripted(FAKE_COMMIT);

    if (rc == 0) {
        rc = is_too_much(r.len) ? -ENOMEM : fl_sys_linux.commit(r);
    }
    if (rc == 0) {
        change_map(r, BECOME_USABLE);
    }
    return fake_note(FAKE_COMMIT, r, rc);
}

static int fake_decommit(struct fl_range r)
{
    int rc = fake_scripted(FAKE_DECOMMIT);

    if (fake.on_purge != NULL) {
        fake.on_purge();
    }
    if (rc == 0 && (rc = fl_sys_linux.decommit(r)) == 0) {
        change_map(r, BECOME_RESERVED);
    }
    return fake_note(FAKE_DECOMMIT, r, rc);
}

static int fake_advise(struct fl_range r, enum fl_sys_advice advice)
{
    int rc = fake_scripted(FAKE_ADVISE);

    return fake_note_advice(FAKE_ADVISE, r, rc != 0 ? rc : fl_sys_linux.advise(r, advice), advice);
}

static int fake_populate(struct fl_range r)
{
    int rc = fake_scripted(FAKE_POPULATE);

    if (fake.on_populate != NULL) {
        fake.on_populate(r);
    }
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

    if (fake.on_lazy_free != NULL) {
        fake.on_lazy_free(r);
    }
    return fake_note(FAKE_LAZY_FREE, r, rc != 0 ? rc : fl_sys_linux.lazy_free(r));
}

static void copy_away(struct fl_range from, uintptr_t to)
{
    memcpy((void *)to, (const void *)from.base, from.len);
    (void)madvise((void *)from.base, from.len, MADV_DONTNEED);
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
    int rc = fd == 1000 ? fake_scripted(FAKE_MOVE) : -EBADF;
    size_t len = fake.move_most != 0 ? fl_min(fake.move_most, from.len) : from.len;

    *out_moved = rc == 0 ? len : 0;
    if (rc == 0) {
        copy_away((struct fl_range){from.base, len}, to);
        rc = len < from.len ? -EAGAIN : 0;
    }
    return fake_note(FAKE_MOVE, from, rc);
}

static void fake_move_end(int fd, struct fl_range to)
{
    (void)fd;
    (void)to;
    fake.moves_open--;
}

static int fake_remap(struct fl_range from, uintptr_t to)
{
    int rc = fake_scripted(FAKE_REMAP);

    if (rc == 0) {
        copy_away(from, to);
        rc = fl_sys_linux.unmap(from);
        change_map(from, REMOVE);
    }
    return fake_note(FAKE_REMAP, from, rc);
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

size_t fake_mapped(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        sum += fake.map[i].range.len;
    }
    return sum;
}

size_t fake_usable(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        sum += fake.map[i].usable ? fake.map[i].range.len : 0;
    }
    return sum;
}

void fake_map_slots(struct fl_sys *table)
{
    table->reserve = fake_reserve;
    table->map_at = fake_map_at;
    table->unmap = fake_unmap;
    table->commit = fake_commit;
    table->decommit = fake_decommit;
    table->advise = fake_advise;
    table->populate = fake_populate;
    table->populate_shared = fake_populate_shared;
    table->lazy_free = fake_lazy_free;
    table->move_begin = fake_move_begin;
    table->move_pages = fake_move_pages;
    table->move_end = fake_move_end;
    table->remap = fake_remap;
    table->resident = fake_resident;
    table->name = fake_name;
}
