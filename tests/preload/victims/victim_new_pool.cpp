// The basic operators from a pool that gives nothing back: free(3) is given no block of it.
#include <cstdio>
#include <cstdlib>
#include <new>

static char pool[256 << 20];
static std::size_t at;

__attribute__((noinline)) void *operator new(std::size_t n)
{
    if (n > sizeof pool - at) {
        throw std::bad_alloc();
    }
    void *p = pool + at;
    at += (n + 15) & ~static_cast<std::size_t>(15);
    return p;
}

__attribute__((noinline)) void operator delete(void *p) noexcept
{
    char *block = static_cast<char *>(p);
    if (block != nullptr && (block < pool || block >= pool + sizeof pool)) {
        std::fputs("delete of a block that came from elsewhere\n", stderr);
        std::_Exit(3);
    }
}

#include "use_new.h"

int main()
{
    use_every_form();
    std::printf("used %zu\n", at);
    return 0;
}
