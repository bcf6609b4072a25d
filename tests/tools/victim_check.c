/* A program to be looked at, and hardly ever run. OWN_MALLOC: with an allocator of its own. */
#include <stddef.h>

#ifdef OWN_MALLOC
void *malloc(size_t len);

void *malloc(size_t len)
{
    static _Alignas(16) char room[1 << 20];
    static size_t used;
    size_t at = used;

    used += (len + 15) / 16 * 16;
    return used <= sizeof room ? room + at : NULL;
}
#endif

int main(void)
{
    return 0;
}
