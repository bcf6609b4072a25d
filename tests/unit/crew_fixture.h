/* Memory to populate, and what this machine offers for it, for the tests of fl_crew_populate. */
#ifndef FL_TESTS_UNIT_CREW_FIXTURE_H
#define FL_TESTS_UNIT_CREW_FIXTURE_H

#include "sys/sys.h"
#include "unit/cmocka_all.h"

#define MIB(n) ((size_t)(n) << 20)

enum { SHARED = 136, SMALL = 120, CANNOT_SHARE = 77 }; /* MiB: enough to be shared, and not */

/* Base pages at a huge page's boundary, nothing resident; until unmap_all, the teardown of each
 * case. */
struct fl_range map(size_t len);
void unmap_all(void);
/* Drops all pages. */
void empty(struct fl_range r);
size_t resident(struct fl_range r);
/* Of `r`, `len` bytes from `from` on. */
struct fl_range part(struct fl_range r, size_t from, size_t len);
/* How many files this process has open. */
unsigned descriptors(void);
/* Is there a ring to be had? By the system call itself. */
bool has_uring(void);
/* Two CPUs and MADV_POPULATE_WRITE are there; else says what is not. Reads the page sizes first.
 * From here on the machine looks idle. */
bool can_share(const char *test);

/* From here on system call `nr` gets `answer` (SECCOMP_RET_...), where its third argument is
 * `third` (any, if negative). That the number means what it means on this machine is not looked
 * at. */
void refuse(int nr, unsigned answer, int third);
/* Runs f in a child, which is forked before `meanwhile` (NULL: nothing) runs here, and begins after
 * that. Returns what waitpid says. */
int status_of_child(void (*meanwhile)(void), int (*f)(void));

#endif
