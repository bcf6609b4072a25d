/* Names of C++ functions as people write them. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_DEMANGLE_H
#define FAULTLESS_FAULTSTAT_RECORD_DEMANGLE_H

/* The name without arguments and template arguments where it is a mangled one and the C++ runtime
 * is installed; else `name`. Good until the next call.  Threads: one. */
const char *fl_demangle(const char *name);

#endif
