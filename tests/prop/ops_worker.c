/* The worker's jobs, and what makes them have something to do. */
#include "prop/advised.h"
#include "prop/ops_kinds.h"
#include "prop/world.h"
#include "unit/fake_sys.h"

const char *op_forget(const struct op *op)
{
    (void)op;
    region.held.in_use_peak = region.held.in_use;
    return NULL;
}

/* What it fills is touched, so that there is something to move. */
const char *op_refill(const struct op *op)
{
    region.refill.demand += (size_t)(op->a % 16) << 21;
    while (fl_region_refill(&region) == 0) {
    }
    for (unsigned i = 0; i < FL_RESERVE_CHUNKS; i++) {
        const struct fl_reserve_chunk *c = &region.pages.reserve.chunk[i];
        uintptr_t base = region.pages.reserve.span.all.base + i * region.pages.reserve.chunk_len;
        for (size_t at = 0; at < c->ready; at += 4096) {
            uint64_t *word = (uint64_t *)(base + at);
            MUST(*word == 0, "the reserve is not zero");
            *word = 0;
        }
        MUST(c->held >= c->ready && c->moving == 0 && !c->isolated, "the reserve does not add up");
    }
    return NULL;
}

const char *op_repair(const struct op *op)
{
    fake.npages = 0;
    for (uint16_t i = 0; i < op->b % 8; i++) {
        uintptr_t at = region.space.first + ((op->a + i * 3u) % 64 << 21);
        size_t own = fl_align_down((size_t)(op->b >> 4) % 513 << 12, fl_page.base);
        fake.page[fake.npages++] = (struct fake_page){at, MIB(2), own, i % 3 == 0, 0};
    }
    for (int i = 0; i < 100 && fl_region_repair(&region) == 0; i++) {
    }
    return NULL;
}

const char *op_hide(const struct op *op)
{
    advised_hide(&region, op);
    return NULL;
}
