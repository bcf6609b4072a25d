#include "faultstat/replacements.h"

#include <string.h>

#define LIBRARIES(...)                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define X(name, file, libraries) {name, file, libraries, "", ""},
#define TUNED(name, file, libraries, variable, value) {name, file, libraries, variable, value},
static const struct fl_replacement replacement[] = {
#include "faultstat/replacements.def"
};
#undef X
#undef TUNED

enum { COUNT = sizeof(replacement) / sizeof(replacement[0]) };

static const char tuned[] = "-tuned";

const struct fl_replacement *fl_replacement_find(const char *name, bool *is_tuned)
{
    for (size_t i = 0; i < COUNT; i++) {
        const struct fl_replacement *r = &replacement[i];
        size_t len = strlen(r->name);
        *is_tuned = r->variable[0] != '\0' && strncmp(name, r->name, len) == 0 &&
                    strcmp(name + len, tuned) == 0;
        if (*is_tuned || strcmp(name, r->name) == 0) {
            return r;
        }
    }
    return NULL;
}

bool fl_replacement_is(const char *file)
{
    for (size_t i = 0; i < COUNT; i++) {
        size_t len = strlen(replacement[i].file);
        if (len > 0 && strncmp(file, replacement[i].file, len) == 0) {
            return true;
        }
    }
    return false;
}
