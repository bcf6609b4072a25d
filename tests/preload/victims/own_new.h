// The basic operators, replaced as many programs do: a header before each block, and counts. What
// the standard's other forms do comes here too, or does not: that is what is tried.
#ifndef FAULTLESS_TESTS_PRELOAD_OWN_NEW_H
#define FAULTLESS_TESTS_PRELOAD_OWN_NEW_H

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unistd.h>

static std::atomic<long> own_made, own_live;
static const std::size_t own_header = 64;

#define OWN_MARK "OWN-NEW"

__attribute__((noinline)) void *operator new(std::size_t n)
{
    char *p = static_cast<char *>(std::malloc(n + own_header));
    if (p == nullptr) {
        throw std::bad_alloc();
    }
    std::memcpy(p, OWN_MARK, sizeof OWN_MARK);
    own_made++;
    own_live++;
    return p + own_header;
}

__attribute__((noinline)) void operator delete(void *p) noexcept
{
    if (p == nullptr) {
        return;
    }
    char *block = static_cast<char *>(p) - own_header;
    if (std::memcmp(block, OWN_MARK, sizeof OWN_MARK) != 0) {
        dprintf(2, "delete of a block that came from elsewhere\n");
        _exit(3);
    }
    std::memset(block, 0, sizeof OWN_MARK);
    own_live--;
    std::free(block);
}

#endif
