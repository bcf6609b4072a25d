/* Finds libfaultless.so from the place of the running binary: the build folder and the installed
 * prefix look alike to it. Holds no state. */
#include "launcher/find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fl_find_library(char path[PATH_MAX])
{
    static const char *const place[] = {"", "../lib/", "../lib/" FL_MULTIARCH "/"};
    const char *forced = getenv("FAULTLESS_LIB");
    if (forced != NULL && forced[0] != '\0') {
        if (access(forced, R_OK) != 0) {
            return -ENOENT;
        }
        return realpath(forced, path) != NULL ? 0 : -errno;
    }
    char folder[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (len < 0) {
        return -errno;
    }
    folder[len] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        return -ENOENT;
    }
    slash[1] = '\0';
    for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++) {
        char trial[2 * PATH_MAX];
        int n = snprintf(trial, sizeof(trial), "%s%slibfaultless.so", folder, place[i]);
        if (n < 0 || (size_t)n >= sizeof(trial)) {
            return -ENAMETOOLONG;
        }
        if (access(trial, R_OK) == 0) {
            return realpath(trial, path) != NULL ? 0 : -errno;
        }
    }
    return -ENOENT;
}
