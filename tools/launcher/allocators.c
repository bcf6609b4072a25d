#include "launcher/allocators.h"

#include "faultstat/elf.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

static const struct fl_allocator table[] = {
#define X(what, mark, package, system, better) {what, mark, package, system, better},
#include "launcher/allocators.def"
#undef X
};

enum { ROWS = sizeof table / sizeof table[0], PREFIX = 64 };

struct search {
    size_t row;         /* the best so far; ROWS: none */
    char found[PREFIX]; /* the string that its mark is, or ends */
};

/* The whole of the string whose end is at `at`: names of variables alone have another beginning. */
static void note_string(struct search *s, const char *bytes, const char *at)
{
    const char *from = at;

    while (from > bytes && at - from < PREFIX / 2 &&
           (isupper((unsigned char)from[-1]) || from[-1] == '_')) {
        from--;
    }
    snprintf(s->found, sizeof s->found, "%.*s", (int)strnlen(from, PREFIX - 1), from);
}

static bool take(void *with, const char *bytes, size_t len)
{
    struct search *s = with;

    for (size_t i = 0; i < s->row; i++) {
        const char *mark = table[i].mark + (table[i].mark[0] == '*');
        const char *at = memmem(bytes, len, mark, strlen(mark) + 1);
        if (at != NULL) {
            s->row = i;
            note_string(s, bytes, at);
        }
    }
    return s->row == 0;
}

static void set(struct fl_own *out, const struct fl_allocator *kind, const char *name)
{
    bool has_star = kind->better[0] == '*';

    out->kind = kind;
    snprintf(out->better, sizeof out->better, "%s%s", has_star ? name : "",
             kind->better + has_star);
}

bool fl_allocators_find(const char *path, struct fl_own *out)
{
    struct search s = {.row = ROWS};
    struct fl_elf facts;
    const char *slash = strrchr(path, '/');

    if (fl_elf_each_text(path, take, &s) != 0 || s.row == ROWS || table[s.row].what[0] == '\0' ||
        fl_elf_read(path, &facts) != 0 || facts.has_malloc) {
        return false;
    }
    *out = (struct fl_own){.is_package = false};
    set(out, &table[s.row], s.found);
    snprintf(out->where, sizeof out->where, "%s", slash != NULL ? slash + 1 : path);
    return true;
}

static bool is_installed(const char *prefix, int len, const char *package)
{
    static const char *const folder[] = {
        "lib*/python3*/site-packages", "lib*/python3*/dist-packages", "lib*/python3/dist-packages"};
    char pattern[PATH_MAX];
    bool is_there = false;
    glob_t found;

    for (size_t i = 0; i < sizeof folder / sizeof folder[0] && !is_there; i++) {
        snprintf(pattern, sizeof pattern, "%.*s/%s/%s", len, prefix, folder[i], package);
        is_there = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
        if (is_there) {
            globfree(&found);
        }
    }
    return is_there;
}

unsigned fl_allocators_packages(const char *interpreter, struct fl_own *out, unsigned most)
{
    const char *base = strrchr(interpreter, '/'), *bin = base;
    unsigned n = 0;

    while (bin != NULL && bin > interpreter && bin[-1] != '/') {
        bin--;
    }
    if (base == NULL || strncmp(base, "/python", 7) != 0 || bin == interpreter) {
        return 0;
    }
    for (size_t i = 0; i < ROWS && n < most; i++) {
        const struct fl_allocator *kind = &table[i];
        if (kind->package[0] != '\0' &&
            is_installed(interpreter, (int)(bin - 1 - interpreter), kind->package)) {
            out[n] = (struct fl_own){.is_package = true};
            set(&out[n], kind, kind->mark);
            snprintf(out[n].where, sizeof out[n].where, "%s", kind->package);
            n++;
        }
    }
    return n;
}

static const char *look_up(const char *setting, const char *(*value_of)(void *, const char *),
                           void *with)
{
    char name[PREFIX + 1];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(setting, "="), setting);
    return setting[0] != '\0' ? value_of(with, name) : NULL;
}

bool fl_allocators_say(const struct fl_own *own,
                       const char *(*value_of)(void *with, const char *name), void *with,
                       char *text, size_t size)
{
    const struct fl_allocator *kind = own->kind;
    const char *system = look_up(kind->system, value_of, with);
    const char *better = look_up(own->better, value_of, with);

    if (system != NULL && strcmp(system, strchr(kind->system, '=') + 1) == 0) {
        return false;
    }
    int n = snprintf(text, size, "%s%s: %s is not malloc's", own->where,
                     own->is_package ? ", where it is imported" : "", kind->what);
    if (n < 0 || (size_t)n >= size) {
        return true;
    }
    if (kind->system[0] != '\0' && system == NULL) {
        snprintf(text + n, size - (size_t)n, "; with %s it is", kind->system);
    } else if (own->better[0] != '\0' && better == NULL) {
        snprintf(text + n, size - (size_t)n, "; %s helps it by itself", own->better);
    }
    return true;
}
