/* Buffers move to where another has just died: what lay there is still in the processor's caches.
 * The methods look for low layouts alone, and of one height there are many. */
#include "pack/run.h"

#include <string.h>

enum { LOOK_BACK = 4 /* buffers that died last before a birth */ };
static const uint64_t cost_most = 30000000; /* pairs that are compared: some 50 ms */

struct warm {
    struct fl_pack_buffer *buffer;
    uint64_t height;
    struct fl_pack_times times;
    uint64_t cost;
    bool *is_settled; /* of each buffer: it has come to another, or another to it */
};

static bool overlap(const struct fl_pack_buffer *a, uint64_t offset, const struct fl_pack_buffer *b)
{
    return offset < b->offset + b->size && b->offset < offset + a->size;
}

/* Does nothing else lie there while it lives? */
static bool is_free(struct warm *w, const struct fl_pack_buffer *b, uint64_t offset)
{
    bool is_free = true;

    for (size_t k = 0; k < w->times.n && is_free; k++, w->cost++) {
        const struct fl_pack_buffer *o = &w->buffer[w->times.born[k]];
        if (o->birth >= b->death) {
            break;
        }
        is_free = o == b || o->death <= b->birth || !overlap(b, offset, o);
    }
    return is_free;
}

static bool move(struct warm *w, uint32_t i, uint64_t offset)
{
    struct fl_pack_buffer *b = &w->buffer[i];
    bool fits = b->size <= w->height && offset <= w->height - b->size &&
                (b->align == 0 || (offset & (b->align - 1)) == 0) && is_free(w, b, offset);

    b->offset = fits ? offset : b->offset;
    return fits;
}

/* Does half of `b`, or more, lie where `a` lay? */
static bool covers(const struct fl_pack_buffer *a, const struct fl_pack_buffer *b)
{
    uint64_t from = fl_max(a->offset, b->offset);
    uint64_t to = fl_min(a->offset + a->size, b->offset + b->size);

    return to > from && to - from >= b->size / 2;
}

/* `dead` dies before `born` is born: one of them comes to the other. */
static bool join(struct warm *w, uint32_t dead, uint32_t born)
{
    const struct fl_pack_buffer *a = &w->buffer[dead], *b = &w->buffer[born];

    return covers(a, b) || move(w, born, a->offset) ||
           (!w->is_settled[dead] && move(w, dead, b->offset));
}

/* Is neither more than `factor` times the other? */
static bool are_alike(uint64_t a, uint64_t b, uint64_t factor)
{
    return a / factor <= b && b / factor <= a;
}

static void join_those(struct warm *w, uint64_t factor)
{
    size_t dead = 0;

    for (size_t k = 0; k < w->times.n && w->cost < cost_most; k++) {
        uint32_t i = w->times.born[k];
        for (; dead < w->times.n && w->buffer[w->times.died[dead]].death <= w->buffer[i].birth;
             dead++) {
        }
        for (size_t back = 1; back <= LOOK_BACK && back <= dead && !w->is_settled[i]; back++) {
            uint32_t d = w->times.died[dead - back];
            if (are_alike(w->buffer[d].size, w->buffer[i].size, factor) && join(w, d, i)) {
                w->is_settled[i] = w->is_settled[d] = true;
            }
        }
    }
}

void fl_pack_warm(struct fl_pack_buffer *b, size_t n, uint64_t height, void *scratch,
                  size_t scratch_len)
{
    struct fl_bump room = {scratch, (char *)scratch + scratch_len, n > UINT32_MAX / 4};
    struct warm w = {.buffer = b, .height = height};

    w.is_settled = fl_bump_carve(&room, n, sizeof *w.is_settled);
    if (fl_pack_by_time(b, n, &room, &w.times)) {
        memset(w.is_settled, 0, n * sizeof *w.is_settled);
        join_those(&w, 1);
        join_those(&w, 4);
    }
}
