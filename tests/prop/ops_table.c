/* What an operation's numbers mean, how regions are set up, and operations as text. */
#include "prop/ops.h"

#include "region/region.h"

#include <stdio.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

const struct ops_config ops_configs[] = {
    {.name = "plain"},
    {.name = "lazy from 20 MiB", .eager_max = MIB(20)},
    {.name = "limit of 24 MiB", .limit = MIB(24)},
    {.name = "base pages, touched",
     .eager_max = MIB(18),
     .limit = MIB(64),
     .base_pages = true,
     .by_touch = true},
    {.name = "reserved window", .eager_max = MIB(24), .reserved = true},
    {.name = "stock of 16 MiB", .stock = MIB(16)},
    {.name = "mremap, stock, limit of 96 MiB",
     .eager_max = MIB(30),
     .limit = MIB(96),
     .stock = MIB(8),
     .method = FL_METHOD_REMAP},
    {.name = "nothing moves", .method = FL_METHOD_NONE},
    {.name = "touch", .wait_for_touch = true},
    {.name = "touch, stock of 16 MiB", .stock = MIB(16), .wait_for_touch = true},
    {.name = "touch, base pages", .limit = MIB(96), .base_pages = true, .wait_for_touch = true},
    {.name = "touch, reserved, mremap",
     .reserved = true,
     .method = FL_METHOD_REMAP,
     .wait_for_touch = true},
    {.name = "no worker", .alone = true},
    {.name = "no worker, touch, stock of 8 MiB",
     .stock = MIB(8),
     .wait_for_touch = true,
     .alone = true},
    {.name = "three shards", .shards = 3},
    {.name = "two shards, touch, stock of 8 MiB",
     .stock = MIB(8),
     .wait_for_touch = true,
     .shards = 2},
    {.name = "two nodes", .nodes = true},
    {.name = "two nodes, touch", .eager_max = MIB(20), .wait_for_touch = true, .nodes = true},
};
const size_t ops_nconfigs = sizeof ops_configs / sizeof ops_configs[0];

/* Sizes from a page to 32 MiB, small ones more often, page multiples as alloc/ rounds them. */
size_t ops_size(uint16_t v)
{
    size_t pages = 1 + (v >> 4) % 64;

    return fl_align_up(pages << (12 + ((v & 15) < 10 ? (v & 3) : 4 + (v & 3))), fl_page.base);
}

size_t ops_align(uint16_t v)
{
    return (v & 7) != 0 ? fl_page.base : fl_max(fl_page.base, KIB(4) << (v >> 3) % 13);
}

/* Bits of which ops_size and world_block make little. */
unsigned ops_thread(uint16_t v)
{
    return v >> 10;
}

void ops_print(const struct op *ops, size_t n)
{
#define OP_NAME(name, f, share) #name,
    static const char *const name[OP_KINDS] = {OPS(OP_NAME)};

    for (size_t i = 0; i < n; i++) {
        fprintf(stderr, "  {%u, %u, %u}, /* %s", ops[i].kind, ops[i].a, ops[i].b,
                name[ops[i].kind]);
        if (ops[i].kind <= OP_CALLOC) {
            fprintf(stderr, " %zu at %zu", ops_size(ops[i].a), ops_align(ops[i].b));
        } else if (ops[i].kind == OP_RESIZE || ops[i].kind == OP_MOVE) {
            fprintf(stderr, " by or to %zu", ops_size(ops[i].b));
        }
        fprintf(stderr, " */\n");
    }
}
