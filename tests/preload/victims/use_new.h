// Every form of new and delete that a program writes or its library uses, small and large.
#ifndef FAULTLESS_TESTS_PRELOAD_USE_NEW_H
#define FAULTLESS_TESTS_PRELOAD_USE_NEW_H

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

template <std::size_t N> struct block_of {
    char byte[N];
};
template <std::size_t N> struct alignas(128) aligned_of {
    char byte[N];
};

template <typename T> static void one_and_many()
{
    T *one = new T;
    one->byte[sizeof one->byte - 1] = 1;
    delete one; // sized
    T *many = new T[3];
    many[2].byte[0] = 1;
    delete[] many;
    one = new (std::nothrow) T;
    delete one;
    many = new (std::nothrow) T[2];
    delete[] many;
}

static void use_strings()
{
    std::string s(100, 'x'), large(300000, 'y');
    for (int i = 0; i < 12; i++) {
        s += s;
        large += s;
    }
    std::map<int, std::string> m;
    for (int i = 0; i < 300; i++) {
        m[i] = std::string(static_cast<std::size_t>(i) * 7, 'z');
    }
    std::ostringstream text;
    text << s << large.size();
    std::vector<double> v(100000);
    v.resize(500000, 1.0);
    std::stable_sort(v.begin(), v.end()); // nothrow new, and delete
    auto shared = std::make_shared<block_of<70000>>();
    shared->byte[5] = 1;
}

static inline void use_every_form()
{
    one_and_many<block_of<1>>();
    one_and_many<block_of<60000>>();
    one_and_many<block_of<(1 << 16)>>();
    one_and_many<block_of<(1 << 20)>>();
    one_and_many<block_of<(40 << 20)>>();
    one_and_many<aligned_of<128>>(); // these the replacements do not see
    one_and_many<aligned_of<(1 << 20)>>();
    use_strings();
}

#endif
