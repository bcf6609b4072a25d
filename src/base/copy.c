/* Copies by stores that leave the caches as they are: for buffers that a device reads next. */
#include "base/base.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

/* `to` is aligned to a line, `len` is whole lines. */
static void stream_lines(char *to, const char *from, size_t len)
{
    for (size_t i = 0; i < len; i += FL_CACHE_LINE) {
        const __m128i *s = (const __m128i *)(const void *)(from + i);
        __m128i *d = (__m128i *)(void *)(to + i);
        __m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1), c = _mm_loadu_si128(s + 2),
                e = _mm_loadu_si128(s + 3);
        _mm_stream_si128(d, a);
        _mm_stream_si128(d + 1, b);
        _mm_stream_si128(d + 2, c);
        _mm_stream_si128(d + 3, e);
    }
    _mm_sfence();
}

void fl_copy_streaming(void *to, const void *from, size_t len)
{
    char *d = to;
    const char *s = from;
    size_t head = fl_min(len, -(uintptr_t)d % FL_CACHE_LINE);
    size_t body = fl_align_down(len - head, FL_CACHE_LINE);

    memcpy(d, s, head);
    stream_lines(d + head, s + head, body);
    memcpy(d + head + body, s + head + body, len - head - body);
}

#else

void fl_copy_streaming(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
}

#endif
