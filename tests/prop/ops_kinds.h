/* One function an operation: NULL, or what went wrong. See OPS in ops.h. */
#ifndef FL_TESTS_PROP_OPS_KINDS_H
#define FL_TESTS_PROP_OPS_KINDS_H

#include "prop/ops.h"

/* ops_blocks.c: what a program does with blocks. */
const char *op_take(const struct op *op);
const char *op_let_go(const struct op *op);
const char *op_row(const struct op *op);
const char *op_resize(const struct op *op);
const char *op_move(const struct op *op);

/* ops_threads.c: its threads, and its children. */
const char *op_cache(const struct op *op);
const char *op_cpu(const struct op *op);
const char *op_shard(const struct op *op);
const char *op_fork_off(const struct op *op);

/* ops_time.c: what ages, and goes back. */
const char *op_tick(const struct op *op);
const char *op_wait(const struct op *op);
const char *op_idle(const struct op *op);
const char *op_purge(const struct op *op);
const char *op_give_back(const struct op *op);

/* ops_kernel.c: what there is, and what the kernel says. */
const char *op_limit(const struct op *op);
const char *op_refuse(const struct op *op);
const char *op_press(const struct op *op);
const char *op_answer(const struct op *op);

/* ops_worker.c: the worker's jobs. */
const char *op_forget(const struct op *op);
const char *op_refill(const struct op *op);
const char *op_repair(const struct op *op);
const char *op_hide(const struct op *op);

#endif
