/* The C library's plain functions on strings, for this library alone: they are hidden, so that each
 * call of src/ and of what is linked into it comes here. libc's are names that other preloaded
 * libraries may define, and boot reads the environment and procfs by them. Short texts, seldom: not
 * made for speed. Compiled without builtins, or one of them would become a call of itself. */
#if !defined(__clang__)
#pragma GCC optimize "no-tree-loop-distribute-patterns"
#endif

#include <string.h>

size_t strlen(const char *s)
{
    const char *end = s;

    while (*end != '\0') {
        end++;
    }
    return (size_t)(end - s);
}

size_t strnlen(const char *s, size_t most)
{
    size_t n = 0;

    while (n < most && s[n] != '\0') {
        n++;
    }
    return n;
}

int strncmp(const char *a, const char *b, size_t most)
{
    while (most != 0 && *a == *b && *a != '\0') {
        a++;
        b++;
        most--;
    }
    return most == 0 ? 0 : (unsigned char)*a - (unsigned char)*b;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, (size_t)-1);
}

char *strchr(const char *s, int c)
{
    while (*s != (char)c) {
        if (*s++ == '\0') {
            return NULL;
        }
    }
    return (char *)(size_t)s;
}

char *strrchr(const char *s, int c)
{
    char *last = NULL;

    for (char *at = strchr(s, c); at != NULL; at = *at != '\0' ? strchr(at + 1, c) : NULL) {
        last = at;
    }
    return last;
}

char *strstr(const char *s, const char *part)
{
    size_t n = strlen(part);

    while (strncmp(s, part, n) != 0) {
        if (*s++ == '\0') {
            return NULL;
        }
    }
    return (char *)(size_t)s;
}

size_t strcspn(const char *s, const char *ends)
{
    size_t n = 0;

    while (s[n] != '\0' && strchr(ends, s[n]) == NULL) {
        n++;
    }
    return n;
}

size_t strspn(const char *s, const char *of)
{
    size_t n = 0;

    while (s[n] != '\0' && strchr(of, s[n]) != NULL) {
        n++;
    }
    return n;
}

char *strpbrk(const char *s, const char *of)
{
    s += strcspn(s, of);
    return *s != '\0' ? (char *)(size_t)s : NULL;
}
