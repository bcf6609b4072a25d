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

/* Once the kernel refuses nothing and there is plenty each thread is served. */
static const char *recover(void)
{
    static const struct op calm[] = {{OP_REFUSE, 1, 0}, {OP_PRESS, 0, 1}, {OP_ANSWER, 7, 7},
                                     {OP_LIMIT, 0, 0},  {OP_TICK, 0, 0},  {OP_TICK, 0, 0}};
    const char *wrong = NULL;

    for (size_t i = 0; i < sizeof calm / sizeof calm[0] && wrong == NULL; i++) {
        wrong = apply(&calm[i]);
    }
    for (uint16_t i = 0; i < 2 * WORLD_THREADS && wrong == NULL; i++) {
        const struct block *b = world_spare();
        wrong = op_take(&(struct op){OP_TAKE, (uint16_t)(i << 10 | 0x3f4), 1});
        wrong =
            wrong == NULL && b->e == NULL ? "a request is refused where there is plenty" : wrong;
    }
    return wrong;
}

/* Frees all, and has all of it go back. */
static const char *free_all(void)
{
    for (uint16_t i = 0; i < WORLD_BLOCKS; i++) {
        const char *wrong = op_let_go(&(struct op){OP_FREE, i, 0});
        MUST(wrong == NULL, wrong);
    }
    (void)fl_region_purge(&region, 0);
    const char *wrong = world_check();
    return wrong != NULL ? wrong : world_check_empty();
}

static const char *end(void)
{
    const char *wrong = free_all();

    wrong = wrong != NULL ? wrong : recover();
    return wrong != NULL ? wrong : free_all();
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
