/* The switches by which libraries with an allocator of their own take malloc's memory, or keep
 * freed memory in huge pages for as long as this library does. docs/results/own-allocators.md has
 * what each gives; one that gave nothing is not here. */
#include "launcher/tune.h"

#include "launcher/allocators.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name, *value;
} knob[] = {
    {"ARROW_DEFAULT_MEMORY_POOL", "system"}, /* Arrow, pyarrow: malloc in place of its mimalloc */
    {"_RJEM_MALLOC_CONF", FL_JEMALLOC_HUGE}, /* Polars; Rust's tikv-jemallocator */
    {"DUCKDB_JE_MALLOC_CONF", FL_JEMALLOC_STAYS}, /* DuckDB, whose jemalloc knows no huge pages */
};

bool fl_tune(const char *program)
{
    char set[1024] = "", kept[256] = "";
    size_t nset = 0, nkept = 0; /* the table is short: both fit */

    for (size_t i = 0; i < sizeof knob / sizeof knob[0]; i++) {
        if (getenv(knob[i].name) != NULL) {
            nkept += (size_t)snprintf(kept + nkept, sizeof kept - nkept, " %s", knob[i].name);
            continue;
        }
        if (setenv(knob[i].name, knob[i].value, 0) != 0) {
            fprintf(stderr, "%s: out of memory\n", program);
            return false;
        }
        nset +=
            (size_t)snprintf(set + nset, sizeof set - nset, " %s=%s", knob[i].name, knob[i].value);
    }
    fprintf(stderr, "%s: --tune set%s%s%s\n", program, nset != 0 ? set : " nothing",
            nkept != 0 ? "; yours stay:" : "", kept);
    return true;
}
