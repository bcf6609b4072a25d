/* The table of holes: see holes.h.
 *
 * Groups of 64 huge pages: a word that says which are split, then a bit for each of their base
 * pages that is absent, then for each that is bare. So a look at memory without holes reads a word
 * each 128 MiB; and none at all while nothing is split. */
#include "pages/holes.h"

enum { RUNS_MOST = 4096 }; /* of some 65,000 maps that a process may have */
enum { WORD_BITS = 64, GROUP_HUGE = WORD_BITS, GROUP_HEAD = 1 };

enum kind { ABSENT, BARE, KINDS };
enum change { COUNT, DIG, FILL };

static size_t group_bytes(void)
{
    return GROUP_HUGE * fl_page.huge;
}

/* uint64_t that the bits of one kind take. */
static size_t kind_words(void)
{
    return (group_bytes() >> fl_page.shift) / WORD_BITS;
}

/* The same of a group. */
static size_t group_words(void)
{
    return GROUP_HEAD + KINDS * kind_words();
}

static uint64_t *group_of(const struct fl_holes *h, uintptr_t addr)
{
    uint64_t *table = (uint64_t *)h->span.all.base; /* NOLINT(performance-no-int-to-ptr) */

    fl_assert(addr - h->window.base < h->window.len);
    return table + (addr - h->window.base) / group_bytes() * group_words();
}

static uint64_t huge_bit(const struct fl_holes *h, uintptr_t addr)
{
    return (uint64_t)1 << ((addr - h->window.base) / fl_page.huge % GROUP_HUGE);
}

static struct fl_range reached(const struct fl_holes *h)
{
    /* acquire: pairs with fl_holes_reach */
    return (struct fl_range){h->window.base, atomic_load_explicit(&h->reach, memory_order_acquire)};
}

static bool is_reached(const struct fl_holes *h, uintptr_t addr)
{
    return addr - h->window.base < reached(h).len;
}

/* Right behind the descriptors, where nothing else is either; anywhere, where the window is
 * reserved. */
static bool make(struct fl_holes *h)
{
    static const char name[] = "faultless:holes";
    struct fl_range place = {h->place, fl_holes_table_len(h->window.len)};
    struct fl_vspace span = {.all = place, .name = name};

    if (h->reserved) {
        span.reserved = true;
        if (fl_sys.reserve(place.len, &span.all.base) != 0) {
            return false;
        }
    }
    span.mapped = h->mapped;
    h->span = span;
    return true;
}

struct fl_range fl_holes_table(const struct fl_holes *h)
{
    if (reached(h).len == 0) {
        return (struct fl_range){0, 0};
    }
    return (struct fl_range){h->span.all.base,
                             atomic_load_explicit(&h->span.grown, memory_order_relaxed)};
}

size_t fl_holes_table_len(size_t window)
{
    size_t groups = fl_align_up(window, group_bytes()) / group_bytes();

    return fl_align_up(groups * group_words() * sizeof(uint64_t), fl_page.huge);
}

bool fl_holes_reach(struct fl_holes *h, uintptr_t end)
{
    bool done = is_reached(h, end - 1);

    fl_assert(end > h->window.base && end <= fl_range_end(h->window));
    if (done || atomic_exchange(&h->making, true)) {
        return done;
    }
    size_t groups = (end - h->window.base + group_bytes() - 1) / group_bytes();
    done = is_reached(h, end - 1); /* by who was at it until now */
    if (done) {
        atomic_store(&h->making, false);
        return true;
    }
    done = (h->span.all.len != 0 || make(h)) &&
           fl_vspace_grow(&h->span, groups * group_words() * sizeof(uint64_t)) == 0;
    if (done) { /* release: a reader of the bound may read what lies below it */
        fl_assert(groups * group_bytes() > reached(h).len);
        atomic_store_explicit(&h->reach, groups * group_bytes(), memory_order_release);
    }
    atomic_store(&h->making, false);
    return done;
}

bool fl_holes_is_split(const struct fl_holes *h, uintptr_t addr)
{
    return is_reached(h, addr) &&
           (__atomic_load_n(group_of(h, addr), __ATOMIC_RELAXED) & huge_bit(h, addr)) != 0;
}

/* Before and behind it, how many are split. */
static size_t neighbours(const struct fl_holes *h, uintptr_t huge)
{
    return (size_t)fl_holes_is_split(h, huge - fl_page.huge) +
           (size_t)fl_holes_is_split(h, huge + fl_page.huge);
}

bool fl_holes_split(struct fl_holes *h, uintptr_t huge)
{
    uint64_t *group = group_of(h, huge);
    size_t beside = neighbours(h, huge);

    fl_assert(huge % fl_page.huge == 0 && !fl_holes_is_split(h, huge));
    fl_assert(h->runs >= beside && (h->split == 0) == (h->runs == 0));
    if (beside == 0 && h->runs >= RUNS_MOST) {
        return false;
    }
    __atomic_store_n(group, *group | huge_bit(h, huge), __ATOMIC_RELAXED);
    h->split++;
    h->runs += 1 - beside;
    fl_assert(h->runs != 0 && h->runs <= h->split);
    return true;
}

void fl_holes_join(struct fl_holes *h, uintptr_t huge)
{
    uint64_t *group = group_of(h, huge);

    fl_assert(fl_holes_is_split(h, huge) && h->split != 0);
    fl_assert(fl_holes_in(h, (struct fl_range){huge, fl_page.huge}) == 0);
    __atomic_store_n(group, *group & ~huge_bit(h, huge), __ATOMIC_RELAXED);
    h->split--;
    h->runs -= 1 - neighbours(h, huge);
    fl_assert(h->runs <= h->split && (h->split == 0) == (h->runs == 0));
}

/* The end of what one word of the table says, from `addr` on: of a group in which nothing is split,
 * or of a huge page. */
static uintptr_t stride_end(const struct fl_holes *h, uintptr_t addr)
{
    size_t unit = *group_of(h, addr) == 0 ? group_bytes() : fl_page.huge;

    return h->window.base + ((addr - h->window.base) / unit + 1) * unit;
}

uintptr_t fl_holes_first_split(const struct fl_holes *h, struct fl_range range)
{
    struct fl_range all = fl_range_common(range, reached(h));
    uintptr_t at = all.base, end = fl_range_end(all);

    if (h->split == 0) {
        return fl_range_end(range);
    }
    while (at < end && !fl_holes_is_split(h, at)) {
        at = stride_end(h, at);
    }
    return at < end ? at : fl_range_end(range);
}

struct fl_range fl_holes_next_split(const struct fl_holes *h, struct fl_range range)
{
    uintptr_t at = fl_holes_first_split(h, range);
    uintptr_t end = fl_min(fl_range_end(range), fl_range_end(reached(h)));
    struct fl_range run = {at, 0};

    while (at < end && fl_holes_is_split(h, at)) {
        at += fl_page.huge;
        run.len += fl_page.huge;
    }
    return run;
}

static size_t page_of(const struct fl_holes *h, uintptr_t addr)
{
    return (addr - h->window.base) % group_bytes() >> fl_page.shift;
}

static uint64_t *bits_of(const struct fl_holes *h, uintptr_t addr, enum kind kind)
{
    return group_of(h, addr) + GROUP_HEAD + kind * kind_words();
}

/* Within one huge page. Returns base pages. What is written next to a part that is another thread's
 * to read, see fl_holes_next_bare, leaves that as it is. */
static FL_APART size_t change_pages(struct fl_holes *h, struct fl_range part, enum kind kind,
                                    enum change how)
{
    size_t page = page_of(h, part.base);
    size_t end = page + (part.len >> fl_page.shift), changed = 0;
    uint64_t *bits = bits_of(h, part.base, kind);

    fl_assert(page < end && end <= group_bytes() >> fl_page.shift && part.len <= fl_page.huge);
    for (size_t next; page < end; page = next) {
        next = fl_min(end, (page / WORD_BITS + 1) * WORD_BITS);
        uint64_t mask = ~(uint64_t)0 >> (WORD_BITS - (next - page)) << page % WORD_BITS;
        uint64_t *word = &bits[page / WORD_BITS], hit = (how == DIG ? ~*word : *word) & mask;
        changed += (size_t)__builtin_popcountll(hit);
        if (how != COUNT && hit != 0) {
            __atomic_store_n(word, *word ^ hit, __ATOMIC_RELAXED);
        }
    }
    return changed;
}

static size_t change(struct fl_holes *h, struct fl_range range, enum kind kind, enum change how)
{
    struct fl_range all = fl_range_common(range, reached(h));
    size_t changed = 0;

    if (FL_LIKELY(h->split == 0)) {
        return 0;
    }
    for (uintptr_t at = all.base, next; at < fl_range_end(all); at = next) {
        next = fl_min(stride_end(h, at), fl_range_end(all));
        if (fl_holes_is_split(h, at)) {
            changed += change_pages(h, (struct fl_range){at, next - at}, kind, how);
        }
    }
    return changed << fl_page.shift;
}

size_t fl_holes_in(struct fl_holes *h, struct fl_range range)
{
    return change(h, range, ABSENT, COUNT);
}

size_t fl_holes_dig(struct fl_holes *h, struct fl_range range)
{
    size_t dug = change(h, range, ABSENT, DIG);

    h->absent += dug;
    fl_assert(dug <= range.len && h->absent <= h->split * fl_page.huge);
    return dug;
}

size_t fl_holes_fill(struct fl_holes *h, struct fl_range range)
{
    size_t filled = change(h, range, ABSENT, FILL);

    fl_assert(h->absent >= filled);
    h->absent -= filled;
    h->bare -= h->bare != 0 ? change(h, range, BARE, FILL) : 0;
    fl_assert(h->bare <= h->absent);
    return filled;
}

size_t fl_holes_bare_in(struct fl_holes *h, struct fl_range range)
{
    return h->bare != 0 ? change(h, range, BARE, COUNT) : 0;
}

size_t fl_holes_strip(struct fl_holes *h, struct fl_range range)
{
    size_t bared = change(h, range, BARE, DIG);

    h->bare += bared;
    fl_assert(bared <= range.len && h->bare <= h->absent);
    return bared;
}

/* Each is a map more. The more there are, the longer is the next one: of 16 GiB in pieces of a MiB
 * the most are some 20,000. */
bool fl_holes_is_too_short(const struct fl_holes *h, size_t len)
{
    return len < h->bare / RUNS_MOST;
}

static bool is_bare(const struct fl_holes *h, uintptr_t addr)
{
    size_t page = page_of(h, addr);

    return fl_holes_is_split(h, addr) &&
           (__atomic_load_n(&bits_of(h, addr, BARE)[page / WORD_BITS], __ATOMIC_RELAXED) >>
                page % WORD_BITS &
            1) != 0;
}

struct fl_range fl_holes_next_bare(const struct fl_holes *h, struct fl_range range, bool bare)
{
    uintptr_t at = range.base, end = fl_range_end(range);

    while (at < end && is_bare(h, at) != bare) {
        at += fl_page.base;
    }
    uintptr_t from = at;
    while (at < end && is_bare(h, at) == bare) {
        at += fl_page.base;
    }
    return (struct fl_range){from, at - from};
}

void fl_holes_forget(struct fl_holes *h, struct fl_range range)
{
    uintptr_t end = fl_range_end(range);

    fl_assert(range.base % fl_page.huge == 0 && range.len % fl_page.huge == 0);
    for (uintptr_t at = range.base; h->split != 0; at += fl_page.huge) {
        at = fl_holes_first_split(h, (struct fl_range){at, end - at});
        if (at == end) {
            return;
        }
        (void)fl_holes_fill(h, (struct fl_range){at, fl_page.huge});
        fl_holes_join(h, at);
    }
}
