/* The maps of the process, as /proc/self/smaps tells of them. */
#ifndef FAULTLESS_TESTS_PRELOAD_SMAPS_H
#define FAULTLESS_TESTS_PRELOAD_SMAPS_H

#include "victim.h"

#include <stdbool.h>

struct map {
    FILE *file; /* NULL: before the first map */
    unsigned long from, to;
    size_t rss_kib, huge_kib;
    char flags[512];
};

/* for (struct map m = {.file = NULL}; next_map(&m);) goes through all of them, to the end. */
static inline bool next_map(struct map *m)
{
    if (m->file == NULL) {
        m->file = fopen("/proc/self/smaps", "re");
        CHECK(m->file != NULL);
    }
    while (fgets(m->flags, sizeof m->flags, m->file) != NULL) {
        unsigned long from, to;
        if (sscanf(m->flags, "%lx-%lx ", &from, &to) == 2) {
            m->from = from;
            m->to = to;
        }
        (void)sscanf(m->flags, "Rss: %zu", &m->rss_kib);
        (void)sscanf(m->flags, "AnonHugePages: %zu", &m->huge_kib);
        if (strncmp(m->flags, "VmFlags:", 8) == 0) { /* a map's last line */
            return true;
        }
    }
    (void)fclose(m->file);
    return false;
}

/* `flag`: " um", say. */
static inline bool map_has(const struct map *m, const char *flag)
{
    return strstr(m->flags, flag) != NULL;
}

#endif
