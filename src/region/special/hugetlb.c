/* Blocks on hugetlb pages, which the administrator has set apart: FAULTLESS_HUGETLB.
 *
 * Such a block is a LIVE, LAZY extent of whole pages, marked as user-remapped: so it is no cache's,
 * does not move, and goes back to the pool when it is freed. It counts neither as populated nor as
 * in use, since its memory is no part of what the machine has left. All pages are there before the
 * block is handed out: a page that is missing at a touch would be a SIGBUS, where the pool is
 * empty, or a control group's limit is met. Where not all are to be had, ordinary pages serve.
 *
 * fork(2) would share the pages, and a copy comes from the pool again: where that is empty, a child
 * that writes gets a SIGBUS, and so does one that reads what the parent has written. So the child
 * gets none of them, but a copy in ordinary pages, made before the fork. Where there is no memory
 * for that, and of what the program has mapped otherwise, the kernel's rule stays. Sources: the
 * kernel's admin-guide/mm/hugetlbpage and mm/hugetlbfs_reserv, madvise(2), and hugetlb_wp of
 * mm/hugetlb.c. State: r->hugetlb, under the region lock; `copied` is the forking thread's. */
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/serve/take.h"

#include <errno.h>
#include <string.h>

enum { WASTE_SHARE = 8 }; /* of a block, what whole pages may hold beyond it */
enum { ROOM_SHARE = 8 };  /* of the headroom, what copies leave */
static const uint64_t look_again_ns = 100000000;

static bool is_on_hugetlb(const struct fl_extent *e)
{
    return (e->left & FL_LEFT_HUGETLB) != 0;
}

static FL_APART void say_refused(const struct fl_region *r, size_t len, int rc)
{
    static _Atomic bool said;
    char line[128];
    struct fl_text t = fl_text_on(line, sizeof line);

    if (r->config.quiet || atomic_exchange(&said, true)) {
        return;
    }
    fl_text_str(&t, "hugetlb: too few pages are free for a block of ");
    fl_text_size(&t, len);
    fl_text_str(&t, ", error ");
    fl_text_u64(&t, (uint64_t)-rc);
    fl_text_str(&t, ": ordinary pages instead");
    fl_say(line);
}

/* LIVE, with ordinary pages mapped. */
static struct fl_extent *take_addresses(struct fl_region *r, size_t len, size_t align)
{
    unsigned zone = fl_zone_first(r, len);

    if (!fl_region_lock_unless_forking(r)) {
        return NULL;
    }
    struct fl_extent *e =
        fl_take_seed(r, len) == 0 ? fl_take_lazy(r, len, align, zone, true) : NULL;
    if (e != NULL) {
        r->stats.lazy--;
        r->stats.lazy_bytes -= len;
        r->stats.takes++;
        r->stats.take_bytes += len;
    }
    fl_region_unlock(r);
    return e;
}

/* Nothing is mapped there any more. */
static void give_addresses(struct fl_region *r, struct fl_extent *e)
{
    (void)fl_extent_claim(e, fl_region_epoch(r));
    fl_region_lock(r);
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && r->stats.takes != 0);
    r->stats.takes--;
    r->stats.take_bytes -= e->len;
    r->held.in_use += e->len;
    e->content = FL_CONTENT_EMPTY;
    e->unreclaimable = e->len;
    fl_region_give_locked(r, e);
    r->stats.gives--;
    fl_region_unlock(r);
}

static int fill(struct fl_region *r, struct fl_extent *e, size_t page)
{
    struct fl_range all = fl_extent_range(e);
    int rc = fl_sys.map_hugetlb(all, page);

    if (rc != 0) {
        return rc;
    }
    fl_pages_mapped(&r->pages, all, e->zone);
    rc = fl_sys.populate_shared(all, FL_HELPERS_ALL);
    if (rc != 0) {
        (void)fl_vspace_decommit(&r->space.window, all);
    }
    return rc;
}

static struct fl_extent *take_on(struct fl_region *r, size_t len, size_t align, size_t page)
{
    struct fl_extent *e = take_addresses(r, fl_align_up(len, page), fl_max(align, page));

    if (e == NULL) {
        return NULL;
    }
    int rc = fill(r, e, page);
    if (rc != 0) {
        say_refused(r, len, rc);
        give_addresses(r, e);
        return NULL;
    }
    e->left = FL_LEFT_HUGETLB;
    e->hugetlb.copy = 0;
    e->hugetlb.hidden = false;
    e->hugetlb.changed = false;
    fl_extent_note_remapped(e);
    fl_assert(fl_extent_is_live(e));
    fl_region_lock(r);
    TAILQ_INSERT_HEAD(&r->hugetlb.live, e, by_age);
    fl_region_unlock(r);
    return e;
}

struct fl_extent *fl_hugetlb_take(struct fl_region *r, size_t len, size_t align)
{
    static const struct {
        unsigned kind;
        size_t page;
    } size[] = {{FL_HUGETLB_1G, (size_t)1 << 30}, {FL_HUGETLB_2M, (size_t)2 << 20}};
    struct fl_extent *e = NULL;

    if (fl_sys_is_confined() || r->space.window.reserved) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof size / sizeof size[0] && e == NULL; i++) {
        bool fits = fl_align_up(len, size[i].page) - len <= len / WASTE_SHARE;
        if (fits && (r->config.hugetlb & size[i].kind) != 0) {
            e = take_on(r, len, align, size[i].page);
        }
    }
    return e;
}

bool fl_hugetlb_leave(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    if (!is_on_hugetlb(e)) {
        return true;
    }
    if (r->hugetlb.copied != NULL) { /* it is being read */
        e->next = r->hugetlb.freed;
        r->hugetlb.freed = e;
        return false;
    }
    TAILQ_REMOVE(&r->hugetlb.live, e, by_age);
    return true;
}

bool fl_region_drop_hugetlb(struct fl_region *r, struct fl_range range, bool clear)
{
    struct fl_extent *e =
        r->config.hugetlb_from != 0 ? fl_extent_in_use_around(&r->space, range.base) : NULL;
    size_t len = fl_align_up(range.len, fl_page.base);

    if (e == NULL || !is_on_hugetlb(e) || range.base % fl_page.base != 0 ||
        len > e->base + e->len - range.base || e->hugetlb.changed) {
        return false;
    }
    if (clear) {
        memset((void *)range.base, 0, len); /* NOLINT(performance-no-int-to-ptr) */
    }
    return true;
}

/* Notes the blocks that there are, and how much memory copies of them may take. */
static size_t begin_copies(struct fl_region *r)
{
    size_t room = 0;

    fl_region_lock(r);
    r->hugetlb.copied = TAILQ_FIRST(&r->hugetlb.live);
    bool copies = r->config.hugetlb_fork == FL_PIN_COPIED && !fl_sys_is_confined();
    if (r->hugetlb.copied != NULL && copies && fl_look_unlocking(r)) {
        room = r->look.noted.headroom - r->look.noted.headroom / ROOM_SHARE;
    }
    fl_region_unlock(r);
    return room;
}

/* In ordinary pages; 0: not to be had. */
static uintptr_t copy_of(const struct fl_extent *e)
{
    struct fl_range copy = {0, e->len};

    if (fl_sys.reserve(copy.len, &copy.base) != 0) {
        return 0;
    }
    if (fl_sys.commit(copy) != 0) {
        (void)fl_sys.unmap(copy);
        return 0;
    }
    (void)fl_sys.advise(copy, FL_ADVICE_HUGE);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    memcpy((void *)copy.base, (const void *)e->base, e->len);
    return copy.base;
}

static void drop_copy(struct fl_extent *e)
{
    if (e->hugetlb.copy != 0) {
        (void)fl_sys.unmap((struct fl_range){e->hugetlb.copy, e->len});
        e->hugetlb.copy = 0;
    }
}

/* What is changed may be unreadable, or have advice of the program's own: the kernel's rule
 * stays. */
static void keep_from_child(struct fl_region *r, struct fl_extent *e, size_t *room)
{
    if (e->hugetlb.changed) {
        return;
    }
    if (r->config.hugetlb_fork == FL_PIN_COPIED) {
        e->hugetlb.copy = e->len <= *room ? copy_of(e) : 0;
        if (e->hugetlb.copy == 0) { /* it inherits them, as the kernel has it */
            return;
        }
        *room -= e->len;
    }
    e->hugetlb.hidden = fl_sys.advise(fl_extent_range(e), FL_ADVICE_NO_FORK) == 0;
    if (!e->hugetlb.hidden) {
        drop_copy(e);
    }
}

/* How many forks the calling thread is in: a handler of its may fork amid one. */
static _Thread_local unsigned depth;

/* One thread at a time, for as long as its copies are made. */
static void begin_fork(struct fl_region *r)
{
    while (atomic_exchange(&r->hugetlb.forking, 1) != 0) {
        (void)fl_sys.wait(&r->hugetlb.forking, 1, look_again_ns);
    }
}

static void end_fork(struct fl_region *r)
{
    depth = 0;
    atomic_store(&r->hugetlb.forking, 0);
    (void)fl_sys.wake(&r->hugetlb.forking, 1);
}

void fl_hugetlb_fork_prepare(struct fl_region *r)
{
    if (r->config.hugetlb_from == 0 || ++depth != 1) {
        return;
    }
    begin_fork(r);
    size_t room = begin_copies(r);
    for (struct fl_extent *e = r->hugetlb.copied; e != NULL; e = TAILQ_NEXT(e, by_age)) {
        keep_from_child(r, e, &room);
    }
}

static void give_freed(struct fl_region *r)
{
    fl_region_lock(r);
    struct fl_extent *e = r->hugetlb.freed;
    r->hugetlb.freed = r->hugetlb.copied = NULL;
    fl_region_unlock(r);
    while (e != NULL) {
        struct fl_extent *next = e->next;
        fl_region_give(r, e);
        e = next;
    }
}

void fl_hugetlb_fork_parent(struct fl_region *r)
{
    if (r->config.hugetlb_from == 0 || --depth != 0) {
        return;
    }
    for (struct fl_extent *e = r->hugetlb.copied; e != NULL; e = TAILQ_NEXT(e, by_age)) {
        if (e->hugetlb.hidden) {
            (void)fl_sys.advise(fl_extent_range(e), FL_ADVICE_FORK);
            e->hugetlb.hidden = false;
        }
        drop_copy(e);
    }
    give_freed(r);
    end_fork(r);
}

/* Its pages are ordinary ones from here on. False: it is as the kernel left it. */
static bool bring(struct fl_region *r, const struct fl_extent *e)
{
    bool copied = e->hugetlb.copy != 0;

    if (!e->hugetlb.hidden || (!copied && r->config.hugetlb_fork != FL_PIN_WIPED)) {
        return false;
    }
    if (fl_vspace_commit(&r->space.window, fl_extent_range(e), r->config.huge) != 0) {
        return false;
    }
    if (copied && fl_sys.remap((struct fl_range){e->hugetlb.copy, e->len}, e->base) != 0) {
        (void)fl_vspace_decommit(&r->space.window,
                                 fl_extent_range(e)); /* no zeros where bytes were */
        return false;
    }
    return true;
}

void fl_hugetlb_fork_child(struct fl_region *r, bool whole)
{
    if (r->config.hugetlb_from == 0) {
        return;
    }
    /* Those that other threads were given since the copies began, too: without a copy. */
    struct fl_extent *first = whole ? TAILQ_FIRST(&r->hugetlb.live) : r->hugetlb.copied;
    for (struct fl_extent *e = first, *next; e != NULL; e = next) {
        next = TAILQ_NEXT(e, by_age);
        bool own = bring(r, e);
        if (!own) { /* what is there now may be gone at the next look */
            e->hugetlb.changed = true;
        } else if (whole) {
            fl_region_lock(r);
            TAILQ_REMOVE(&r->hugetlb.live, e, by_age);
            e->left = 0;
            fl_region_count_use(r, (int64_t)e->len);
            fl_region_unlock(r);
        }
    }
    if (whole) {
        give_freed(r);
    }
    end_fork(r);
}
