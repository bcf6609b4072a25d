/* What the kernel was told of each extent, and what the extent says, for the sequences of ops.h. */
#ifndef FL_TESTS_PROP_ADVISED_H
#define FL_TESTS_PROP_ADVISED_H

#include "prop/ops.h"
#include "region/region.h"

/* Hides free memory: at once, or what has aged, or few of it. */
void advised_hide(struct fl_region *r, const struct op *op);
/* NULL, or what is wrong. */
const char *advised_check(struct fl_region *r);

/* What is said to be absent is in no memory; else what is wrong. */
const char *holes_check(struct fl_region *r);

#endif
