/* What an operation's numbers mean, how regions are set up, and operations as text. */
#include "prop/ops.h"

#include "region/region.h"

#include <stdio.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

const struct ops_config ops_configs[] = {
    {"plain", 0, 0, 0, true, false, false, FL_METHOD_MOVE, false},
    {"lazy from 20 MiB", MIB(20), 0, 0, true, false, false, FL_METHOD_MOVE, false},
    {"limit of 24 MiB", 0, MIB(24), 0, true, false, false, FL_METHOD_MOVE, false},
    {"base pages, touched", MIB(18), MIB(64), 0, false, true, false, FL_METHOD_MOVE, false},
    {"reserved window", MIB(24), 0, 0, true, false, true, FL_METHOD_MOVE, false},
    {"stock of 16 MiB", 0, 0, MIB(16), true, false, false, FL_METHOD_MOVE, false},
    {"mremap, stock, limit of 96 MiB", MIB(30), MIB(96), MIB(8), true, false, false,
     FL_METHOD_REMAP, false},
    {"nothing moves", 0, 0, 0, true, false, false, FL_METHOD_NONE, false},
    {"touch", 0, 0, 0, true, false, false, FL_METHOD_MOVE, true},
    {"touch, stock of 16 MiB", 0, 0, MIB(16), true, false, false, FL_METHOD_MOVE, true},
    {"touch, base pages", 0, MIB(96), 0, false, false, false, FL_METHOD_MOVE, true},
    {"touch, reserved, mremap", 0, 0, 0, true, false, true, FL_METHOD_REMAP, true},
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

void ops_print(const struct op *ops, size_t n)
{
#define OP_NAME(name, share) #name,
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
