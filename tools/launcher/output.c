#include "launcher/output.h"

#include <errno.h>
#include <string.h>

static bool is_stdout(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

static void complain(const char *path)
{
    fprintf(stderr, "faultless: %s: %s\n", is_stdout(path) ? "standard output" : path,
            strerror(errno));
}

FILE *fl_output_open(const char *path)
{
    FILE *out = is_stdout(path) ? stdout : fopen(path, "we");

    if (out == NULL) {
        complain(path);
    }
    return out;
}

bool fl_output_close(FILE *out, const char *path)
{
    bool is_good = ferror(out) == 0;

    is_good = (is_stdout(path) ? fflush(out) : fclose(out)) == 0 && is_good;
    if (!is_good) {
        complain(path);
    }
    return is_good;
}
