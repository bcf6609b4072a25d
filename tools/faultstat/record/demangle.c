/* The C++ runtime's own demangler, found at run time: faultstat is C and links no C++ library. */
#include "faultstat/record/demangle.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef char *demangle_fn(const char *name, char *buffer, size_t *len, int *status);

static demangle_fn *find_demangler(void)
{
    static bool is_looked_for;
    static demangle_fn *found;
    if (!is_looked_for) {
        is_looked_for = true;
        void *library = dlopen("libstdc++.so.6", RTLD_NOW);
        void *symbol = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&found, &symbol,
               sizeof(found)); /* ISO C converts no object pointer to a function's */
    }
    return found;
}

/* Does an operator's name stand at `at`, whose brackets are no arguments? */
static size_t operator_len(const char *at)
{
    static const char word[] = "operator";
    if (strncmp(at, word, sizeof(word) - 1) != 0) {
        return 0;
    }
    size_t len = sizeof(word) - 1;
    bool is_call = strncmp(at + len, "()", 2) == 0;
    return len + (is_call ? 2 : strspn(at + len, "<>=-+*/&|^!~[],%"));
}

/* Drop what stands in < > and, at the top, from the ( of the arguments on. */
static void shorten(char *name)
{
    static const char anonymous[] = "(anonymous namespace)";
    char *to = name;
    int depth = 0;
    for (const char *at = name; *at != '\0'; at++) {
        size_t kept = depth == 0 ? operator_len(at) : 0;
        if (kept == 0 && depth == 0 && strncmp(at, anonymous, sizeof(anonymous) - 1) == 0) {
            kept = sizeof(anonymous) - 1;
        }
        if (kept != 0) {
            memmove(to, at, kept);
            to += kept;
            at += kept - 1;
        } else if (*at == '<') {
            depth++;
        } else if (*at == '>' && depth > 0) {
            depth--;
        } else if (*at == '(' && depth == 0) {
            break;
        } else if (depth == 0) {
            *to++ = *at;
        }
    }
    *to = '\0';
}

const char *fl_demangle(const char *name)
{
    static char *kept;
    int status;
    demangle_fn *demangle = strncmp(name, "_Z", 2) == 0 ? find_demangler() : NULL;
    char *full = demangle != NULL ? demangle(name, NULL, NULL, &status) : NULL;
    if (full == NULL) {
        return name;
    }
    shorten(full);
    free(kept);
    kept = full;
    const char *space = strrchr(kept, ' '); /* the type that a template function returns */
    return space != NULL && strstr(kept, "operator") == NULL && strchr(kept, '(') == NULL
               ? space + 1
               : kept;
}
