/* The table of holes: see holes.h.
 *
 * Groups of 64 huge pages: a word that says which are split, one with the mark, then the bits of
 * their base pages. So a look at memory without holes reads a word each 128 MiB; and none at all
 * while nothing is split. */
#include "region/internal.h"

enum { RUNS_MOST = 4096 }; /* of some 65,000 maps that a process may have */
enum { WORD_BITS = 64, GROUP_HUGE = WORD_BITS, GROUP_HEAD = 2 };

enum change { COUNT, DIG, FILL };

static size_t group_bytes(void)
{
    return GROUP_HUGE * fl_page.huge;
}

/* uint64_t that a group takes. */
static size_t group_words(void)
{
    return GROUP_HEAD + (group_bytes() >> fl_page.shift) / WORD_BITS;
}

static uint64_t *group_of(const struct fl_region *r, uintptr_t addr)
{
    uint64_t *table = (uint64_t *)r->holes.span.all.base; /* NOLINT(performance-no-int-to-ptr) */

    return table + (addr - r->space.base) / group_bytes() * group_words();
}

static uint64_t huge_bit(const struct fl_region *r, uintptr_t addr)
{
    return (uint64_t)1 << ((addr - r->space.base) / fl_page.huge % GROUP_HUGE);
}

static struct fl_range reached(const struct fl_region *r)
{
    /* acquire: pairs with fl_holes_reach */
    return (struct fl_range){r->space.base,
                             atomic_load_explicit(&r->holes.reach, memory_order_acquire)};
}

static bool is_reached(const struct fl_region *r, uintptr_t addr)
{
    return addr - r->space.base < reached(r).len;
}

/* Right behind the descriptors, where nobody else is either; anywhere, where the window is
 * reserved. */
static bool make(struct fl_region *r)
{
    static const char name[] = "faultless:holes";
    struct fl_range place = {fl_range_end(r->space.descriptors.span.all),
                             fl_holes_table_len(r->space.window.all.len)};
    struct fl_vspace span = {.all = place, .name = name};

    if (r->space.window.reserved) {
        span.reserved = true;
        if (fl_sys.reserve(place.len, &span.all.base) != 0) {
            return false;
        }
    }
    span.mapped = r->space.descriptors.span.mapped;
    fl_region_lock(r);
    r->holes.span = span;
    fl_region_unlock(r);
    return true;
}

size_t fl_holes_table_len(size_t window)
{
    size_t groups = fl_align_up(window, group_bytes()) / group_bytes();

    return fl_align_up(groups * group_words() * sizeof(uint64_t), fl_page.huge);
}

bool fl_holes_reach(struct fl_region *r, uintptr_t end)
{
    struct fl_holes *h = &r->holes;
    bool done = is_reached(r, end - 1);

    if (done || atomic_exchange(&h->making, true)) {
        return done;
    }
    size_t groups = (end - r->space.base + group_bytes() - 1) / group_bytes();
    done = is_reached(r, end - 1); /* by who was at it until now */
    if (done) {
        atomic_store(&h->making, false);
        return true;
    }
    done = (h->span.all.len != 0 || make(r)) &&
           fl_vspace_grow(&h->span, groups * group_words() * sizeof(uint64_t)) == 0;
    if (done) { /* release: whoever reads the bound may read what lies below it */
        atomic_store_explicit(&h->reach, groups * group_bytes(), memory_order_release);
    }
    atomic_store(&h->making, false);
    return done;
}

bool fl_holes_is_split(const struct fl_region *r, uintptr_t addr)
{
    return is_reached(r, addr) &&
           (__atomic_load_n(group_of(r, addr), __ATOMIC_RELAXED) & huge_bit(r, addr)) != 0;
}

/* Before and behind it, how many are split. */
static size_t neighbours(const struct fl_region *r, uintptr_t huge)
{
    return (size_t)fl_holes_is_split(r, huge - fl_page.huge) +
           (size_t)fl_holes_is_split(r, huge + fl_page.huge);
}

bool fl_holes_split(struct fl_region *r, uintptr_t huge)
{
    uint64_t *group = group_of(r, huge);
    size_t beside = neighbours(r, huge);

    if (beside == 0 && r->holes.runs >= RUNS_MOST) {
        return false;
    }
    __atomic_store_n(group, *group | huge_bit(r, huge), __ATOMIC_RELAXED);
    r->holes.split++;
    r->holes.runs += 1 - beside;
    return true;
}

void fl_holes_join(struct fl_region *r, uintptr_t huge)
{
    uint64_t *group = group_of(r, huge);

    __atomic_store_n(group, *group & ~huge_bit(r, huge), __ATOMIC_RELAXED);
    group[1] &= ~huge_bit(r, huge);
    r->holes.split--;
    r->holes.runs -= 1 - neighbours(r, huge);
}

bool fl_holes_mark(struct fl_region *r, uintptr_t huge, bool marked)
{
    uint64_t *group = group_of(r, huge), bit = huge_bit(r, huge);
    bool was = (group[1] & bit) != 0;

    group[1] = marked ? group[1] | bit : group[1] & ~bit;
    return was;
}

/* The end of what one word of the table says, from `addr` on: of a group in which nothing is split,
 * or of a huge page. */
static uintptr_t stride_end(const struct fl_region *r, uintptr_t addr)
{
    size_t unit = *group_of(r, addr) == 0 ? group_bytes() : fl_page.huge;

    return r->space.base + ((addr - r->space.base) / unit + 1) * unit;
}

uintptr_t fl_holes_first_split(const struct fl_region *r, struct fl_range range)
{
    struct fl_range all = fl_range_common(range, reached(r));
    uintptr_t at = all.base, end = fl_range_end(all);

    if (r->holes.split == 0) {
        return fl_range_end(range);
    }
    while (at < end && !fl_holes_is_split(r, at)) {
        at = stride_end(r, at);
    }
    return at < end ? at : fl_range_end(range);
}

struct fl_range fl_holes_next_split(const struct fl_region *r, struct fl_range range)
{
    uintptr_t at = fl_holes_first_split(r, range);
    uintptr_t end = fl_min(fl_range_end(range), fl_range_end(reached(r)));
    struct fl_range run = {at, 0};

    while (at < end && fl_holes_is_split(r, at)) {
        at += fl_page.huge;
        run.len += fl_page.huge;
    }
    return run;
}

/* Within one huge page. Returns base pages. */
static size_t change_pages(struct fl_region *r, struct fl_range part, enum change how)
{
    size_t page = (part.base - r->space.base) % group_bytes() >> fl_page.shift;
    size_t end = page + (part.len >> fl_page.shift), changed = 0;
    uint64_t *bits = group_of(r, part.base) + GROUP_HEAD;

    for (size_t next; page < end; page = next) {
        next = fl_min(end, (page / WORD_BITS + 1) * WORD_BITS);
        uint64_t mask = ~(uint64_t)0 >> (WORD_BITS - (next - page)) << page % WORD_BITS;
        uint64_t *word = &bits[page / WORD_BITS], hit = (how == DIG ? ~*word : *word) & mask;
        changed += (size_t)__builtin_popcountll(hit);
        *word = how == COUNT ? *word : *word ^ hit;
    }
    return changed;
}

static size_t change(struct fl_region *r, struct fl_range range, enum change how)
{
    struct fl_range all = fl_range_common(range, reached(r));
    size_t changed = 0;

    if (FL_LIKELY(r->holes.split == 0)) {
        return 0;
    }
    for (uintptr_t at = all.base, next; at < fl_range_end(all); at = next) {
        next = fl_min(stride_end(r, at), fl_range_end(all));
        if (fl_holes_is_split(r, at)) {
            changed += change_pages(r, (struct fl_range){at, next - at}, how);
        }
    }
    return changed << fl_page.shift;
}

size_t fl_holes_in(struct fl_region *r, struct fl_range range)
{
    return change(r, range, COUNT);
}

size_t fl_holes_dig(struct fl_region *r, struct fl_range range)
{
    size_t dug = change(r, range, DIG);

    r->holes.absent += dug;
    return dug;
}

size_t fl_holes_fill(struct fl_region *r, struct fl_range range)
{
    size_t filled = change(r, range, FILL);

    r->holes.absent -= filled;
    return filled;
}

void fl_holes_forget(struct fl_region *r, struct fl_range range)
{
    struct fl_range run, rest = range;

    while (r->holes.split != 0 && (run = fl_holes_next_split(r, rest)).len != 0) {
        (void)fl_holes_fill(r, run);
        for (uintptr_t at = run.base; at < fl_range_end(run); at += fl_page.huge) {
            fl_holes_join(r, at);
        }
        rest = (struct fl_range){fl_range_end(run), fl_range_end(rest) - fl_range_end(run)};
    }
}
