/* The option parser on an arbitrary environment: entries are separated by NUL. Every entry that is
 * refused is counted, values stay within the table's bounds, and what is said is whole lines, at
 * most one an entry. */
#include "core/core.h"
#include "unit/fake_sys.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 32 };

static const struct {
    uint64_t min, max;
} bounds[] = {
#define X(kind, name, preset, min, max, unit, text) {min, max},
#include "core/options.def"
#include "core/others.def"
#undef X
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static size_t lines(const char *text)
{
    size_t n = 0;

    for (; (text = strchr(text, '\n')) != NULL; text++) {
        n++;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[4096 + 1];
    char *env[ENTRIES + 1];
    struct fl_options o, again;
    size_t n = 0;

    fake_install();
    size = size < 4096 ? size : 4096;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0; at < size && n < ENTRIES; at += strlen(text + at) + 1) {
        env[n++] = text + at;
    }
    env[n] = NULL;
    fl_options_read(&o, env);
    fl_options_aliases(&o, env);
    must(o.nbad <= n);
    must(fake.nsaid == 0 || fake.said[fake.nsaid - 1] == '\n' || fake.nsaid == FAKE_SAID - 1);
    must(o.nbad != 0 || fake.nsaid == 0);
    must(memchr(data, '\n', size) != NULL || lines(fake.said) <= o.nbad);
    for (size_t i = 0; i < FL_OPTION_COUNT; i++) {
        bool bits = i == FL_OPTION_disable;
        must(bits ? o.value[i] < 1 << 11
                  : o.value[i] >= bounds[i].min && o.value[i] <= bounds[i].max);
        must(o.text[i] == NULL || o.text[i][0] != '\0');
    }
    fl_options_confirm(&o);
    fl_options_read(&again, env);
    fl_options_aliases(&again, env); /* the same environment, the same answer */
    must(again.nbad == o.nbad && memcmp(again.value, o.value, sizeof o.value) == 0);
    return 0;
}
