#include "prop/ops.h"

#include "prop/must.h"
#include "prop/ops_kinds.h"
#include "prop/world.h"

static const char *apply(const struct op *op)
{
#define OP_PLAY(name, f, share) op_##f,
    static const char *(*const play[OP_KINDS])(const struct op *op) = {OPS(OP_PLAY)};

    return play[op->kind](op);
}

/* Frees all, and has all of it go back. */
static const char *end(void)
{
    for (uint16_t i = 0; i < WORLD_BLOCKS; i++) {
        const char *wrong = op_let_go(&(struct op){OP_FREE, i, 0});
        MUST(wrong == NULL, wrong);
    }
    (void)fl_region_purge(&region, 0);
    const char *wrong = world_check();
    return wrong != NULL ? wrong : world_check_aged(0);
}

const char *ops_play(const struct ops_config *c, const struct op *ops, size_t n,
                     volatile size_t *out_at)
{
    const char *wrong = world_begin(c);

    *out_at = 0;
    for (size_t i = 0; i < n && wrong == NULL; i++) {
        *out_at = i;
        wrong = apply(&ops[i]);
        wrong = wrong != NULL ? wrong : world_check();
    }
    return wrong != NULL ? wrong : end();
}
