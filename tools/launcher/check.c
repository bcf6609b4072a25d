/* The check from its start to its exit status. */
#include "launcher/check.h"

#include "launcher/find.h"
#include "launcher/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int fl_check_main(const char *command, const char *json)
{
    static struct fl_check c; /* static for its size */
    const char *before = getenv("LD_PRELOAD");

    c.command = command;
    c.preloads = before != NULL ? strdup(before) : NULL;
    if (command != NULL) { /* before LD_PRELOAD is set: the manager of a shim may be asked */
        fl_target_read(&c.target, command);
    }
    if (!fl_find_preload("faultless") || fl_find_library(c.library) != 0) {
        return FL_EXIT_OWN;
    }
    if (command != NULL && c.target.error != 0) {
        fl_say_not_run("faultless", command, c.target.error);
        return c.target.error == ENOENT ? FL_EXIT_NOT_FOUND : FL_EXIT_CANNOT_RUN;
    }
    fl_host_read(&c.host);
    if (!fl_probe_run(&c.probe)) {
        fprintf(stderr, "faultless: the check's own process cannot be started: %s\n",
                strerror(errno));
        return FL_EXIT_OWN;
    }
    fl_check_judge(&c);
    FILE *out = fl_output_open(json);
    if (out == NULL) {
        return FL_EXIT_OWN;
    }
    (json != NULL ? fl_check_print_json : fl_check_print)(&c, out);
    if (!fl_output_close(out, json)) {
        return FL_EXIT_OWN;
    }
    return c.obstacle == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
