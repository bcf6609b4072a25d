// Operators new and delete in every form, and what they do when memory is not to be had.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unistd.h>
#include <vector>

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            dprintf(2, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #cond);                    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const std::size_t large = 3u << 20, impossible = PTRDIFF_MAX - 4096;
static const std::align_val_t line{64}, page{4096}, huge{2u << 20};
static int handled;

static void *used(void *p, std::size_t align)
{
    CHECK(p != nullptr && reinterpret_cast<std::uintptr_t>(p) % align == 0);
    std::memset(p, 1, large);
    return p;
}

static void every_form()
{
    ::operator delete(used(::operator new(large), 16));
    ::operator delete[](used(::operator new[](large), 16));
    ::operator delete(used(::operator new(large, std::nothrow), 16), std::nothrow);
    ::operator delete[](used(::operator new[](large, std::nothrow), 16), std::nothrow);
    ::operator delete(used(::operator new(large), 16), large);
    ::operator delete[](used(::operator new[](large), 16), large);
    ::operator delete(used(::operator new(large, line), 64), line);
    ::operator delete[](used(::operator new[](large, page), 4096), page);
    ::operator delete(used(::operator new(large, huge), 2u << 20), large, huge);
    ::operator delete[](used(::operator new[](large, huge), 2u << 20), large, huge);
    ::operator delete(used(::operator new(large, page, std::nothrow), 4096), page, std::nothrow);
    ::operator delete[](used(::operator new[](large, page, std::nothrow), 4096), page,
                        std::nothrow);
    void *a = ::operator new(0), *b = ::operator new(0);
    CHECK(a != nullptr && b != nullptr && a != b);
    ::operator delete(a);
    ::operator delete(b);
    ::operator delete(nullptr);
    std::vector<char> v;
    for (int i = 0; i < 1000000; i++) {
        v.push_back(static_cast<char>(i));
    }
    CHECK(v[999999] == static_cast<char>(999999));
}

template <typename F> static bool throws(F f)
{
    try {
        f();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

static void bad_alloc()
{
    ::operator delete(::operator new(large));
    CHECK(throws([] { (void)::operator new(impossible); }));
    CHECK(throws([] { (void)::operator new[](impossible); }));
    CHECK(throws([] { (void)::operator new(impossible, page); }));
    CHECK(throws([] { (void)::operator new[](impossible, page); }));
    CHECK(::operator new(impossible, std::nothrow) == nullptr);
    CHECK(::operator new[](impossible, std::nothrow) == nullptr);
    CHECK(::operator new(impossible, page, std::nothrow) == nullptr);
    CHECK(::operator new[](impossible, huge, std::nothrow) == nullptr);
    for (int i = 0; i < 1000; i++) {
        CHECK(throws([] { (void)::operator new(impossible); }));
    }
}

static void give_up_at_third()
{
    if (++handled == 3) {
        std::set_new_handler(nullptr);
    }
}

static void throw_own()
{
    throw std::bad_alloc();
}

static void new_handler()
{
    ::operator delete(::operator new(large));
    std::set_new_handler(give_up_at_third);
    CHECK(throws([] { (void)::operator new(impossible); }));
    CHECK(handled == 3);
    std::set_new_handler(throw_own);
    CHECK(throws([] { (void)::operator new[](impossible); }));
    CHECK(throws([] { (void)::operator new(impossible, page); }));
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (std::strcmp(mode, "every_form") == 0) {
        every_form();
    } else if (std::strcmp(mode, "bad_alloc") == 0) {
        bad_alloc();
    } else if (std::strcmp(mode, "new_handler") == 0) {
        new_handler();
    } else {
        return 2;
    }
    return 0;
}
