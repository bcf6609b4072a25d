/* Plan files (docs/plan-file.md), and the plans in them as tables. */
#ifndef FAULTLESS_FAULTPLAN_PLANS_H
#define FAULTLESS_FAULTPLAN_PLANS_H

#include "faultplan/table.h"
#include "plan/plan.h"
#include "plan/store/store.h"

/* Does it begin like one, whole or not, of whatever version? Looks at regular files only. */
bool fl_plans_is(const char *path);
/* Its bytes, for fl_file_next; the caller frees them. NULL: a line on standard error says why
 * not. */
void *fl_plans_read(const char *path);
/* The places of its planned slots, with offsets and without names: two for a doubled one. Sizes are
 * rounded up to `granule`. False: a line on standard error. */
bool fl_plans_table(const struct fl_slot *slot, size_t n, uint64_t granule, struct fl_table *out);

#endif
