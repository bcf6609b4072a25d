/* memset, memcpy and memmove for this library alone, hidden as those of strings.c are: the compiler
 * calls them by itself, on threads too that libc does not know. What fills and copies the program's
 * blocks is libc's, which knows the processor better: fl_libc.
 *
 * Compiled without builtins, or one of them would become a call of itself. */
#if !defined(__clang__)
#pragma GCC optimize "no-tree-loop-distribute-patterns"
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* At any address, of any type. */
typedef uint8_t block __attribute__((vector_size(16), aligned(1), may_alias));

enum { BLOCK = sizeof(block) };

void *memset(void *to, int byte, size_t n)
{
    uint8_t *p = to, *end = p + n;
    block all = (block){0} + (uint8_t)byte;

    for (; n >= BLOCK && p + BLOCK < end; p += BLOCK) {
        *(block *)(void *)p = all;
    }
    if (n >= BLOCK) {
        *(block *)(void *)(end - BLOCK) = all;
        return to;
    }
    while (p < end) {
        *p++ = (uint8_t)byte;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    uint8_t *d = to;
    const uint8_t *s = from;

    if ((uintptr_t)d - (uintptr_t)s >= n) { /* nothing is written before it is read */
        size_t i = 0;
        for (; n - i >= BLOCK; i += BLOCK) {
            *(block *)(void *)(d + i) = *(const block *)(const void *)(s + i);
        }
        for (; i < n; i++) {
            d[i] = s[i];
        }
        return to;
    }
    while (n >= BLOCK) {
        n -= BLOCK;
        *(block *)(void *)(d + n) = *(const block *)(const void *)(s + n);
    }
    while (n != 0) {
        n--;
        d[n] = s[n];
    }
    return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
    return memmove(to, from, n);
}

int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *p = a, *q = b;

    while (n != 0 && *p == *q) {
        p++;
        q++;
        n--;
    }
    return n == 0 ? 0 : *p - *q;
}
