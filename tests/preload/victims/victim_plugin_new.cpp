// A C++ library for a C program to load: it is the only one there that knows libstdc++.
#include <cstdint>
#include <new>
#include <vector>

static std::vector<char> kept(1 << 20); // from a constructor of the library

extern "C" int plugin_run(void)
{
    std::vector<char> v(3 << 20, 'x');
    int caught = 0;
    try {
        ::operator delete(::operator new(PTRDIFF_MAX - 4096));
    } catch (const std::bad_alloc &) {
        caught = 1;
    }
    return caught + (v.back() == 'x') + (kept[5] == 0);
}
