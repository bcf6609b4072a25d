/* Opt-in hardening: where a hardened block lies in its extent, what surrounds it, and where it
 * goes when it is freed.
 *
 *     | lead | block                  | slack | guard |      a block with a guard
 *     | block                          rest           |      one without
 *
 * H1  A block with a guard ends as near to it as its alignment allows: slack < max(align, 16),
 *     and 0 where its size is a multiple of that. It may use what was asked for and no more.
 * H2  lead < base page: the page of the block's first byte is the extent's first, by which the
 *     pagemap finds it.
 * H3  Lead and slack hold the canary until free; nothing can touch the guard.
 * H4  A block in quarantine is CACHED, has no pages, and no request gets its addresses.
 *
 * What a block is stands in its descriptor (struct fl_hardened), never beside it. The guard is
 * MADV_GUARD_INSTALL where the kernel has it, which splits no map, else mprotect(2), which makes
 * two more. Where both are refused the block has canaries alone. Blocks handed out unpopulated get
 * no junk, and give their pages back instead of being cleared: they may be sparse.
 * State: fl_harden; the quarantine, lock-free, so that fork and signal handlers find it whole. */
#include "alloc/internal.h"

#include <errno.h>
#include <string.h>

enum fl_guard {
    FL_GUARD_NONE,   /* the block begins where the extent does */
    FL_GUARD_CANARY, /* the kernel refused */
    FL_GUARD_ADVISED,
    FL_GUARD_PROTECTED
};

enum {
    JUNK_NEW = 0xa5,
    JUNK_OLD = 0x5a,
    MALLOC_ALIGN = _Alignof(max_align_t),
    QUARANTINE_BLOCKS = 4096,
    WINDOW_SHARE = 4, /* of the window's addresses, the part that the quarantine may hold */
};

struct fl_harden fl_harden;

static struct {
    _Atomic(struct fl_extent *) slot[QUARANTINE_BLOCKS];
    _Atomic size_t put, taken; /* how many ever: the next is slot[... % QUARANTINE_BLOCKS] */
    _Atomic size_t bytes;      /* what the slots hold */
} quarantine;

static _Atomic bool no_advice; /* the kernel has no MADV_GUARD_INSTALL. Relaxed: a hint */

/* As good as random, of numbers that are not. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void fl_harden_start(struct fl_region *r, const struct fl_options *o)
{
    fl_harden = (struct fl_harden){
        .check = o->value[FL_OPTION_check_free] != 0,
        .zero = (o->value[FL_OPTION_fill] & FL_FILLER_ZERO) != 0,
        .junk = (o->value[FL_OPTION_fill] & FL_FILLER_JUNK) != 0,
        .quarantine =
            fl_min(o->value[FL_OPTION_quarantine], r->space.window.all.len / WINDOW_SHARE),
        .guard = o->value[FL_OPTION_guard],
        .region = r,
    };
    for (size_t i = 0; i < sizeof fl_harden.canary; i++) {
        fl_harden.canary[i] = (unsigned char)(mix(fl_sys.entropy()) >> 8 * i | 1);
    }
    fl_harden.on = fl_harden.check || fl_harden.zero || fl_harden.junk ||
                   fl_harden.quarantine != 0 || fl_harden.guard != 0;
}

static unsigned char *block_of(const struct fl_extent *e)
{
    return (unsigned char *)fl_block(e) + e->hardened.lead;
}

/* One in fl_harden.guard, not to be foreseen: by a hash of how many there were. */
static bool is_guarded(void)
{
    static _Atomic uint64_t count;

    if (fl_harden.guard <= 1) {
        return fl_harden.guard == 1;
    }
    uint64_t x = fl_sys.entropy() +
                 atomic_fetch_add_explicit(&count, 0x9e3779b97f4a7c15u, memory_order_relaxed);
    return mix(x) % fl_harden.guard == 0;
}

static struct fl_range guard_of(const struct fl_extent *e)
{
    uintptr_t end = e->base + e->hardened.lead + e->hardened.asked;

    fl_assert(fl_align_up(end, fl_page.base) + fl_page.base <= e->base + e->len);
    return (struct fl_range){fl_align_up(end, fl_page.base), fl_page.base};
}

static enum fl_guard install(struct fl_range page)
{
    if (!atomic_load_explicit(&no_advice, memory_order_relaxed)) {
        if (fl_sys.advise(page, FL_ADVICE_GUARD) == 0) {
            return FL_GUARD_ADVISED;
        }
        atomic_store_explicit(&no_advice, true, memory_order_relaxed);
    }
    return fl_sys.protect(page) == 0 ? FL_GUARD_PROTECTED : FL_GUARD_CANARY;
}

/* 0: the page is as any other again. */
static int uninstall(const struct fl_extent *e)
{
    switch (e->hardened.guard) {
    case FL_GUARD_ADVISED:
        return fl_sys.advise(guard_of(e), FL_ADVICE_NO_GUARD);
    case FL_GUARD_PROTECTED:
        return fl_sys.commit(guard_of(e));
    default:
        return 0;
    }
}

static unsigned char canary_at(uintptr_t addr)
{
    return fl_harden.canary[addr % sizeof fl_harden.canary];
}

static void put_canary(unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++) {
        *from = canary_at((uintptr_t)from);
    }
}

static bool is_canary(const unsigned char *from, const unsigned char *to)
{
    while (from < to && *from == canary_at((uintptr_t)from)) {
        from++;
    }
    return from >= to;
}

/* Of a block that has a guard. */
static unsigned char *slack_end(const struct fl_extent *e)
{
    return (unsigned char *)fl_block(e) + (guard_of(e).base - e->base);
}

static void surround(const struct fl_extent *e)
{
    fl_assert(e->hardened.lead < fl_page.base && e->hardened.asked != 0);
    put_canary(fl_block(e), block_of(e));
    put_canary(block_of(e) + e->hardened.asked, slack_end(e));
}

/* The block that the extent was taken for. errno is kept. */
static FL_APART void *dress(struct fl_extent *e, size_t n, size_t step, bool guarded, bool junk)
{
    int saved = errno;
    size_t body = fl_align_up(n, fl_page.base);

    fl_assert(fl_extent_is_live(e) && n <= e->len && fl_is_pow2(step));
    e->hardened = (struct fl_hardened){
        .asked = n,
        .lead = guarded ? (uint16_t)fl_align_down(body - n, step) : 0,
        .align = (uint8_t)__builtin_ctzl(step),
    };
    if (junk && e->content != FL_CONTENT_LAZY) {
        (void)fl_libc.memset(block_of(e), JUNK_NEW, n);
    }
    if (guarded) {
        surround(e);
        e->hardened.guard = (uint8_t)install(guard_of(e));
    }
    fl_assert(((uintptr_t)block_of(e) & (step - 1)) == 0);
    errno = saved;
    return block_of(e);
}

void *fl_harden_take(size_t n, size_t align, enum fl_request_kind kind)
{
    size_t step = kind == FL_REQUEST_ALIGNED ? fl_max(align, MALLOC_ALIGN) : MALLOC_ALIGN;
    bool guarded = is_guarded(), junk = fl_harden.junk && kind != FL_REQUEST_CALLOC;
    size_t room = fl_align_up(n, fl_page.base) + (guarded ? fl_page.base : 0);
    struct fl_extent *e = fl_from_region(room, step, kind);

    return e != NULL ? dress(e, n, step, guarded, junk) : NULL;
}

struct fl_extent *fl_harden_find(const void *p)
{
    uintptr_t addr = (uintptr_t)p;
    struct fl_extent *e = fl_region_find(fl_harden.region, fl_align_down(addr, fl_page.base));

    return e != NULL && e->content != FL_CONTENT_INNER && e->base + e->hardened.lead == addr ? e
                                                                                             : NULL;
}

size_t fl_harden_usable(const void *p)
{
    const struct fl_extent *e = fl_harden_find(p);

    if (e == NULL) {
        fl_die("malloc_usable_size", p);
    }
    return e->hardened.guard == FL_GUARD_NONE ? e->len : e->hardened.asked;
}

static _Noreturn void die_overwritten(const char *where, const void *p)
{
    char line[160];
    struct fl_text t = fl_text_on(line, sizeof line);

    fl_text_str(&t, "free of a block with bytes overwritten ");
    fl_text_str(&t, where);
    fl_text_str(&t, ": ");
    fl_text_hex(&t, (uintptr_t)p);
    fl_fatal(line);
}

static void check_surroundings(const struct fl_extent *e)
{
    const unsigned char *p = block_of(e);

    if (!is_canary(fl_block(e), p)) {
        die_overwritten("before its start", p);
    }
    if (!is_canary(p + e->hardened.asked, slack_end(e))) {
        die_overwritten("behind its end", p);
    }
}

/* Nothing of its content is left. What the program has mapped otherwise is mapped anew, so it is
 * not written to: it may be unreadable. */
static void wipe(struct fl_extent *e)
{
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    if ((!fl_harden.zero && !fl_harden.junk) || fl_extent_is_user_remapped(e)) {
        return;
    }
    if (e->content == FL_CONTENT_LAZY) {
        fl_extent_note_remapped(e);
    } else if (fl_harden.zero && e->left != 0) {
        fl_region_clear(fl_route.region, e);
    } else {
        (void)fl_libc.memset(fl_block(e), fl_harden.zero ? 0 : JUNK_OLD, e->len);
    }
}

static void release(struct fl_extent *e)
{
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && atomic_load(&quarantine.bytes) >= e->len);
    atomic_fetch_sub(&quarantine.bytes, e->len);
    fl_region_give(fl_harden.region, e);
}

/* The one that is there for longest; NULL: none is. */
static struct fl_extent *oldest(void)
{
    struct fl_extent *e = NULL;
    size_t i = atomic_load(&quarantine.taken);

    while (e == NULL && i < atomic_load(&quarantine.put)) {
        if (atomic_compare_exchange_weak(&quarantine.taken, &i, i + 1)) {
            e = atomic_exchange(&quarantine.slot[i % QUARANTINE_BLOCKS], NULL);
            i++;
        }
    }
    fl_assert(e == NULL || fl_extent_state(e) == FL_EXTENT_CACHED);
    return e;
}

/* `e` has no pages any more. What it pushes out goes to the region. */
static void keep(struct fl_extent *e)
{
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && fl_harden.quarantine != 0);
    atomic_fetch_add(&quarantine.bytes, e->len);
    size_t i = atomic_fetch_add(&quarantine.put, 1);
    struct fl_extent *out = atomic_exchange(&quarantine.slot[i % QUARANTINE_BLOCKS], e);

    if (out != NULL) { /* the ring is full: what `oldest` would have had next */
        size_t was = i - QUARANTINE_BLOCKS;
        (void)atomic_compare_exchange_strong(&quarantine.taken, &was, was + 1);
        release(out);
    }
    while (atomic_load(&quarantine.bytes) > fl_harden.quarantine && (out = oldest()) != NULL) {
        release(out);
    }
}

void fl_harden_give(struct fl_extent *e, const void *p)
{
    fl_assert(fl_harden.on && fl_extent_state(e) == FL_EXTENT_CACHED);
    if (block_of(e) != p) {
        fl_die("free", p);
    }
    if (e->hardened.guard != FL_GUARD_NONE && !fl_extent_is_user_remapped(e)) {
        check_surroundings(e);
    }
    if (uninstall(e) != 0) {
        fl_extent_note_remapped(e);
    }
    if (fl_region_is_closed(fl_harden.region)) {
        wipe(e);
        fl_region_defer(fl_harden.region, e);
    } else if (fl_harden.quarantine != 0 && fl_region_withhold(fl_harden.region, e)) {
        keep(e);
    } else {
        wipe(e);
        fl_region_give(fl_harden.region, e);
    }
}

bool fl_harden_free(void *p)
{
    struct fl_extent *e = fl_harden_find(p);
    int saved = errno;

    if (e == NULL || !fl_extent_claim(e, fl_region_epoch(fl_harden.region))) {
        return false;
    }
    fl_tell_end(0, 0, e->sample); /* there are no plans */
    e->noted = 0;
    fl_harden_give(e, p);
    errno = saved;
    return true;
}

static _Noreturn void die_mismatched(const char *call, const char *what, size_t said, size_t is,
                                     const void *p)
{
    char line[200];
    struct fl_text t = fl_text_on(line, sizeof line);

    fl_text_str(&t, call);
    fl_text_str(&t, " of a block with another ");
    fl_text_str(&t, what);
    fl_text_str(&t, " (");
    fl_text_u64(&t, said);
    fl_text_str(&t, ", it has ");
    fl_text_u64(&t, is);
    fl_text_str(&t, "): ");
    fl_text_hex(&t, (uintptr_t)p);
    fl_fatal(line);
}

void fl_harden_check(const char *call, const void *p, size_t align, size_t size)
{
    const struct fl_extent *e = fl_harden_find(p);

    if (e == NULL) { /* the next allocator's, or free will tell */
        return;
    }
    size_t was = (size_t)1 << e->hardened.align;
    if (size != SIZE_MAX && size != e->hardened.asked) {
        die_mismatched(call, "size", size, e->hardened.asked, p);
    }
    if (fl_max(align, MALLOC_ALIGN) != was) {
        die_mismatched(call, "alignment", fl_max(align, MALLOC_ALIGN), was, p);
    }
}
