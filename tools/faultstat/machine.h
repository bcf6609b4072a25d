/* Facts of the machine that a benchmark's reader needs. */
#ifndef FAULTLESS_FAULTSTAT_MACHINE_H
#define FAULTLESS_FAULTSTAT_MACHINE_H

#include <jansson.h>
#include <stdint.h>

struct fl_machine {
    char kernel[80];
    char cpu[96];
    char thp[16]; /* the mode in force: always, madvise, never */
    char thp_defrag[16];
    int cores;          /* that this process may use */
    int nodes;          /* NUMA nodes online */
    uint64_t memory;    /* MemTotal, bytes */
    uint64_t available; /* MemAvailable at the start, bytes */
    uint64_t huge_page; /* bytes of a transparent huge page; 0 = none */
};

/* Fill in what can be read; what cannot is "unknown" or 0. */
void fl_machine_read(struct fl_machine *machine);

/* The same as JSON. Returns a new reference; NULL: no memory. */
json_t *fl_machine_json(const struct fl_machine *machine);

#endif
