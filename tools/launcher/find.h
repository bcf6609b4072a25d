/* Finds libfaultless.so for the tools: as built, as installed, or where the user says. */
#ifndef FAULTLESS_LAUNCHER_FIND_H
#define FAULTLESS_LAUNCHER_FIND_H

#include <limits.h>
#include <stdbool.h>

/* Write the path of libfaultless.so into `path`: FAULTLESS_LIB when it is set and not empty, else
 * the first that exists of the running binary's own folder, its ../lib and its ../lib/<multiarch>;
 * then libfaultless.so.0 in those and in ../lib64. Returns 0; -ENOENT when none is there; -EISDIR,
 * -EINVAL: no file; -ENAMETOOLONG; -errno of access and readlink. Threads: any, while no thread
 * changes the environment.  Fork: child may call. */
int fl_find_library(char path[PATH_MAX]);

/* The same; false: one line on standard error, which begins with `program`, says why there is
 * none. */
bool fl_find_or_say(const char *program, char path[PATH_MAX]);

/* As fl_find_library, as LD_PRELOAD may name it. A path with a space, where LD_PRELOAD would be
 * split, becomes the file's name, and its folder the first of LD_LIBRARY_PATH, which is not split
 * there. -EILSEQ: that cannot be done for this path, which is in `path`.  Threads: one. */
int fl_find_preloadable(char path[PATH_MAX]);

/* Put that library at the head of LD_PRELOAD, for what is started next. False: one line on standard
 * error, which begins with `program`, says why not.  Threads: one. */
bool fl_find_preload(const char *program);

/* One line on standard error: why `name`, as execvp(3) takes it, was not run, and what would be.
 * `error`: its number. */
void fl_say_not_run(const char *program, const char *name, int error);

/* May an option name it for a file to be written? "-" is one. Not the next option, nor a program,
 * which is an operand: an option without its file stands before these. */
bool fl_is_output(const char *name);

#endif
