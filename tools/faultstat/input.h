/* The standard input of a command that is run again and again: the same for each run. */
#ifndef FAULTLESS_FAULTSTAT_INPUT_H
#define FAULTLESS_FAULTSTAT_INPUT_H

#include <stdbool.h>
#include <sys/types.h>

struct fl_input {
    int fd;           /* what each run gets */
    bool is_seekable; /* it is set back to `start` before each run */
    off_t start;
};

/* Take `path`, or standard input for NULL. A file is used where it is; a pipe is read to its end
 * into a temporary file that has no name; a terminal or a socket gives nothing to replay:
 * /dev/null. Returns 0; -errno after a line on standard error. */
int fl_input_open(struct fl_input *input, const char *path);

/* Set it back for the next run. Returns 0 or -errno. */
int fl_input_rewind(const struct fl_input *input);

#endif
