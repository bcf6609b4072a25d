/* The profile of large blocks, faultless/profile.h: a copy of a running process's, or of its file.
 * Trusts nothing of either. Leaves it to others what stacks mean. */
#ifndef FAULTLESS_FAULTSTAT_HEAP_IMAGE_H
#define FAULTLESS_FAULTSTAT_HEAP_IMAGE_H

#include "faultless/profile.h"

#include <stdio.h>
#include <sys/types.h>

struct fl_image_sample {
    struct fl_profile_sample head;
    unsigned char *stack; /* head.stack_len bytes */
};

struct fl_image {
    struct fl_profile_head head; /* with the figures that a file has */
    struct fl_image_sample *sample;
    size_t count; /* of those with a state */
    FILE *maps;   /* at the first line */
};

/* Returns 0; -ENOENT: the process is not under faultless; -ENODATA: it has no profile; -EPROTO:
 * what is there is none; -EPROTONOSUPPORT: of another version; -ENOMEM; or what the kernel said. */
int fl_image_of_process(pid_t pid, struct fl_image *image);
int fl_image_of_file(const char *path, struct fl_image *image);

void fl_image_clear(struct fl_image *image);

#endif
