/* A file, because a program may close any descriptor. */
#include "faultstat/library_stats.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void fl_library_stats_create(char path[64])
{
    snprintf(path, 64, "/tmp/faultstat-XXXXXX");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        path[0] = '\0';
    } else {
        close(fd);
    }
}

static uint64_t number(const json_t *line, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(line, key));
}

struct fl_library_stats fl_library_stats_take(const char *path)
{
    struct fl_library_stats stats = {0};
    FILE *file = path[0] != '\0' ? fopen(path, "re") : NULL;
    json_t *line;
    while (file != NULL && (line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        stats.is_known = true;
        stats.requests += number(line, "requests");
        stats.plan_steps += number(line, "plan_steps");
        json_decref(line);
    }
    if (file != NULL) {
        fclose(file);
        (void)!truncate(path, 0);
    }
    return stats;
}
