/* The huge-page reserve. See reserve.h. */
#include "pages/pages.h"

#include <string.h>

/* bytes: some 0.1 ms, for which a call that maps or forks waits; and in which helpers share */
static const size_t fill_step = (size_t)2 << 20, share_from = (size_t)1 << 30;
/* ns that a huge page may take, and ns to wait when it takes longer */
static const uint64_t slow_huge_ns = 2000000, pause_ns = 1000000000;

static struct fl_range chunk_range(const struct fl_reserve *s, const struct fl_reserve_chunk *c)
{
    size_t i = (size_t)(c - s->chunk);

    return (struct fl_range){s->span.all.base + i * s->chunk_len, s->chunk_len};
}

static struct fl_range mapped_range(const struct fl_reserve *s, const struct fl_reserve_chunk *c)
{
    return (struct fl_range){chunk_range(s, c).base, c->mapped};
}

static void count_ready(struct fl_reserve *s, struct fl_reserve_chunk *c, size_t more)
{
    c->ready += more;
    s->ready += more;
    s->ready_of[c->zone] += more;
}

static void count_held(struct fl_reserve *s, struct fl_reserve_chunk *c, size_t more)
{
    c->held += more;
    s->held += more;
}

size_t fl_reserve_take(struct fl_pages *p, size_t want, unsigned zone,
                       struct fl_reserve_piece piece[static FL_RESERVE_PIECES], unsigned *n)
{
    struct fl_reserve *s = &p->reserve;
    size_t rest = want;

    fl_assert(want % fl_page.huge == 0 && zone < FL_ZONES && *n <= FL_RESERVE_PIECES);
    for (unsigned i = 0; i < FL_RESERVE_CHUNKS && rest != 0 && *n < FL_RESERVE_PIECES; i++) {
        struct fl_reserve_chunk *c = &s->chunk[i];
        size_t len = fl_min(rest, c->ready);
        if (c->isolated || len == 0 || c->zone != zone) {
            continue;
        }
        count_ready(s, c, -len);
        count_held(s, c, -len);
        c->moving++;
        fl_assert(fl_reserve_is_sound(s, c));
        fl_unsettled_begin();
        rest -= len;
        uintptr_t base = s->span.all.base + i * s->chunk_len + c->ready;
        piece[(*n)++] = (struct fl_reserve_piece){{base, len}, 0, i};
    }
    return want - rest;
}

/* What did not move at all is of the reserve again, if it lies where the chunk's ready bytes
 * end. */
static bool put_back(struct fl_reserve *s, struct fl_reserve_chunk *c, struct fl_range piece)
{
    if (c->isolated || chunk_range(s, c).base + c->ready != piece.base) {
        return false;
    }
    count_ready(s, c, piece.len);
    count_held(s, c, piece.len);
    fl_assert(fl_reserve_is_sound(s, c));
    return true;
}

size_t fl_reserve_give_back(struct fl_pages *p, const struct fl_reserve_piece *piece, unsigned n)
{
    bool by_remap = atomic_load_explicit(&p->move.method, memory_order_relaxed) != FL_METHOD_MOVE;
    size_t back = 0;

    for (const struct fl_reserve_piece *one = piece; one < piece + n; one++) {
        fl_assert(one->chunk < FL_RESERVE_CHUNKS && one->moved <= one->range.len);
        struct fl_reserve_chunk *c = &p->reserve.chunk[one->chunk];
        fl_assert(c->moving != 0);
        c->moving--;
        fl_unsettled_end();
        if (one->moved == 0 && put_back(&p->reserve, c, one->range)) {
            back += one->range.len;
        } else { /* mremap took the map along, and all that it was told */
            c->holed |= one->moved < one->range.len || by_remap;
        }
    }
    return back;
}

struct fl_reserve_chunk *fl_reserve_claim(struct fl_pages *p, size_t len, unsigned zone)
{
    struct fl_reserve *s = &p->reserve;
    struct fl_reserve_chunk *c = s->chunk, *end = s->chunk + FL_RESERVE_CHUNKS;

    while (c < end && (c->isolated || c->ready != 0 || c->moving != 0)) {
        c++;
    }
    if (c == end) {
        return NULL;
    }
    fl_assert(c->held == 0 && len != 0 && len <= s->chunk_len && zone < FL_ZONES);
    c->isolated = true;
    c->holed |= c->zone != zone && c->mapped != 0; /* mapped for another */
    c->zone = (uint8_t)zone;
    c->held = len;
    s->held += len;
    fl_assert(fl_reserve_is_sound(s, c));
    return c;
}

void fl_reserve_advise(struct fl_range range)
{
    (void)fl_sys.advise(range, FL_ADVICE_NO_FORK);
    (void)fl_sys.advise(range, FL_ADVICE_NO_DUMP);
}

/* No more than is wanted: after mlockall(MCL_FUTURE) all that is mapped is in memory. */
static bool map_upto(struct fl_pages *p, struct fl_reserve_chunk *c, size_t want)
{
    struct fl_range more = {chunk_range(&p->reserve, c).base + c->mapped,
                            want > c->mapped ? want - c->mapped : 0};

    fl_assert(c->isolated && want <= p->reserve.chunk_len);
    if (more.len == 0) {
        return true;
    }
    if (fl_vspace_commit(&p->reserve.span, more, p->huge) != 0) {
        return false;
    }
    fl_pages_mapped(p, more, c->zone);
    fl_reserve_advise(more);
    c->mapped = want;
    return true;
}

/* A call that maps or forks waits while the kernel fills: when it has to search for huge pages, the
 * reserve can wait. */
static size_t fill_steps(struct fl_pages *p, struct fl_range all)
{
    size_t done = 0, step = all.len >= share_from ? all.len : fill_step;

    while (done < all.len) {
        struct fl_range piece = {all.base + done, fl_min(step, all.len - done)};
        uint64_t began = fl_sys.now_ns();
        fl_collapse_bring(p, piece);
        if (fl_populate(p, piece, fill_step) != 0) {
            break;
        }
        done += piece.len;
        fl_assert(done <= all.len);
        uint64_t now = fl_sys.now_ns();
        if (now - began > (piece.len / fl_page.huge + 1) * slow_huge_ns) {
            p->reserve.pause_until_ns = now + pause_ns;
            break;
        }
    }
    return done;
}

size_t fl_reserve_fill(struct fl_pages *p, struct fl_reserve_chunk *c, size_t want)
{
    struct fl_reserve *s = &p->reserve;

    fl_assert(c->isolated && c->ready == 0 && c->moving == 0);
    if (c->holed && fl_vspace_decommit(&s->span, mapped_range(s, c)) == 0) {
        c->holed = false;
        c->mapped = 0;
    }
    if (!map_upto(p, c, want)) {
        return 0;
    }
    return c->holed ? 0 : fill_steps(p, (struct fl_range){chunk_range(s, c).base, want});
}

void fl_reserve_filled(struct fl_pages *p, struct fl_reserve_chunk *c, size_t want, size_t there,
                       uint32_t epoch)
{
    fl_assert(c->isolated && c->held == want && there <= want);
    c->isolated = false;
    count_held(&p->reserve, c, -(want - there));
    count_ready(&p->reserve, c, there);
    atomic_store_explicit(&c->epoch, epoch, memory_order_relaxed);
    fl_assert(fl_reserve_is_sound(&p->reserve, c));
}

bool fl_reserve_may_empty(const struct fl_reserve_chunk *c, uint32_t age, uint32_t epoch)
{
    return !c->isolated && c->mapped != 0 && c->moving == 0 &&
           epoch - atomic_load_explicit(&c->epoch, memory_order_relaxed) >= age;
}

size_t fl_reserve_empty_begin(struct fl_pages *p, struct fl_reserve_chunk *c)
{
    size_t had = c->ready;

    fl_assert(!c->isolated && c->moving == 0 && fl_reserve_is_sound(&p->reserve, c));
    c->isolated = true;
    count_ready(&p->reserve, c, -had);
    return had;
}

bool fl_reserve_empty(struct fl_pages *p, const struct fl_reserve_chunk *c)
{
    fl_assert(c->isolated && c->ready == 0);
    return fl_vspace_decommit(&p->reserve.span, mapped_range(&p->reserve, c)) == 0;
}

size_t fl_reserve_empty_end(struct fl_pages *p, struct fl_reserve_chunk *c, size_t had, bool gone)
{
    fl_assert(c->isolated && c->ready == 0 && c->held == had);
    c->isolated = false;
    if (!gone) {
        count_ready(&p->reserve, c, had);
        return 0;
    }
    c->mapped = 0;
    c->holed = false;
    count_held(&p->reserve, c, -had);
    return had;
    fl_assert(fl_reserve_is_sound(&p->reserve, c));
}

bool fl_reserve_is_mapped(const struct fl_reserve *s)
{
    const struct fl_reserve_chunk *c = s->chunk;

    while (c < s->chunk + FL_RESERVE_CHUNKS && c->held == 0 && c->mapped == 0) {
        c++;
    }
    return c < s->chunk + FL_RESERVE_CHUNKS;
}

struct fl_range fl_reserve_mapped(const struct fl_reserve *s, unsigned i)
{
    fl_assert(i < FL_RESERVE_CHUNKS);
    return mapped_range(s, &s->chunk[i]);
}

size_t fl_reserve_fork_child(struct fl_reserve *s)
{
    size_t held = s->held;

    fl_assert(s->ready <= s->held);
    for (struct fl_reserve_chunk *c = s->chunk; c < s->chunk + FL_RESERVE_CHUNKS; c++) {
        *c = (struct fl_reserve_chunk){.mapped = 0};
    }
    s->ready = s->held = 0;
    memset(s->ready_of, 0, sizeof s->ready_of);
    return held;
}
