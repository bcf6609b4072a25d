/* Heaps in C++, on the real kernel: containers lie in them, what is filled ahead takes no fault,
 * owners end once. */
#include "faultless/heap.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "test_heap_cxx: line %d: %s\n", __LINE__, #condition);            \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (false)

static constexpr std::size_t mib = std::size_t{1} << 20;

static long faults()
{
    struct rusage r = {};

    EXPECT(getrusage(RUSAGE_SELF, &r) == 0);
    return r.ru_minflt;
}

/* smaps' entry for the map that `p` lies in. */
static std::string map_of(const void *p)
{
    std::ifstream smaps("/proc/self/smaps");
    std::string line, entry;
    bool here = false;

    while (std::getline(smaps, line)) {
        unsigned long from = 0, to = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
            here = reinterpret_cast<std::uintptr_t>(p) - from < to - from;
        }
        entry += here ? line + "\n" : "";
    }
    return entry;
}

static void containers_lie_in_it()
{
    faultless::heap heap(32 * mib, "containers");
    {
        faultless::heap_resource resource(heap), again(heap);
        EXPECT(resource == again && resource != *std::pmr::new_delete_resource());
        std::pmr::vector<double> a(mib / 2, 1.5, &resource);
        std::vector<double, faultless::allocator<double>> b(a.begin(), a.end(), heap);
        std::list<int, faultless::allocator<int>> c({1, 2, 3}, heap);
        EXPECT(heap.stats().blocks == 5 && heap.stats().used_bytes == 8 * mib + 3 * 64);
        EXPECT(b[mib / 2 - 1] == 1.5 && c.back() == 3);
        b.push_back(2.5);
        EXPECT(b.back() == 2.5 && heap.stats().used_peak_bytes > heap.stats().used_bytes);
        auto *wide = static_cast<char *>(resource.allocate(100, 4096));
        EXPECT(reinterpret_cast<std::uintptr_t>(wide) % 4096 == 0);
        resource.deallocate(wide, 100, 4096);
    }
    EXPECT(heap.stats().blocks == 0 && heap.stats().longest_bytes == 32 * mib);
}

static void a_container_takes_its_heap_along()
{
    using vector = std::vector<int, faultless::allocator<int>>;
    faultless::heap one(2 * mib, "one"), two(2 * mib, "two");
    vector a(1000, 1, one), b(1000, 2, two);

    EXPECT(a.get_allocator() != b.get_allocator());
    a = std::move(b);
    EXPECT(a[999] == 2 && one.stats().blocks == 0 && two.stats().blocks == 1);
    vector c(1000, 3, one);
    std::swap(a, c);
    EXPECT(a[0] == 3 && c[0] == 2);
    a = c; /* copied into its own heap */
    EXPECT(a[0] == 2 && one.stats().blocks == 1);
}

static void what_is_filled_ahead_takes_no_fault()
{
    faultless::heap heap(64 * mib, "ahead", FL_HEAP_PREFAULTED);
    auto *p = static_cast<char *>(heap.allocate(64 * mib));

    (void)faults();
    long before = faults();
    std::memset(p, 1, 64 * mib);
    EXPECT(faults() == before);
    EXPECT(heap.stats().resident_bytes == UINT64_MAX || heap.stats().resident_bytes == 64 * mib);
    heap.deallocate(p, 64 * mib);
}

static void kinds_are_told_to_the_kernel()
{
    faultless::heap touch(2 * mib, "touch"), base(2 * mib, "base", FL_HEAP_BASE);
    void *p = touch.allocate(1), *q = base.allocate(1);

    EXPECT(map_of(p).find(" hg") != std::string::npos ||
           std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").fail());
    EXPECT(map_of(q).find(" hg") == std::string::npos);
    touch.deallocate(p, 1);
    base.deallocate(q, 1);
}

static void what_cannot_be_throws()
{
    faultless::heap heap(2 * mib, "small");
    bool threw = false;

    try {
        std::vector<char, faultless::allocator<char>> v(3 * mib, heap);
    } catch (const std::bad_alloc &) {
        threw = true;
    }
    EXPECT(threw && heap.stats().refused == 1 && heap.stats().blocks == 0);
    threw = false;
    try {
        faultless::heap bad(2 * mib, "a]b");
    } catch (const std::system_error &e) {
        threw = e.code().value() == EINVAL;
    }
    EXPECT(threw);
    threw = false;
    try {
        faultless::heap bad(2 * mib, "no such node", FL_HEAP_TOUCH, 1000);
    } catch (const std::system_error &e) {
        threw = e.code().value() == EINVAL || e.code().value() == EPERM ||
                e.code().value() == ENOSYS; /* the last two: mbind(2) is refused here */
    }
    EXPECT(threw);
    faultless::heap moved = std::move(heap);
    EXPECT(heap.get() == nullptr && moved.stats().bytes == 2 * mib);
}

static void threads_share_one()
{
    faultless::heap heap(16 * mib, "threads");
    std::vector<std::thread> all;

    for (int t = 0; t < 4; t++) {
        all.emplace_back([&heap, t] {
            for (std::size_t i = 0; i < 2000; i++) {
                std::vector<int, faultless::allocator<int>> v(1 + i * 7 % 5000, t, heap);
                EXPECT(v.front() == t && v.back() == t);
            }
        });
    }
    for (std::thread &t : all) {
        t.join();
    }
    EXPECT(heap.stats().blocks == 0 && heap.stats().allocs == 8000);
}

static void a_child_goes_on()
{
    faultless::heap heap(2 * mib, "forked");
    auto *p = static_cast<int *>(heap.allocate(sizeof(int)));
    int status = 0;

    *p = 7;
    pid_t child = fork();
    if (child == 0) {
        void *q = heap.allocate(100);
        bool good = *p == 7 && q != nullptr;
        *p = 8;
        _exit(good ? 0 : 1);
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    EXPECT(*p == 7 && heap.stats().blocks == 1);
    heap.deallocate(p, sizeof(int));
}

/* Where the kernel keeps names of maps; else 77. */
static int a_map_has_its_heaps_name()
{
    faultless::heap heap(2 * mib, "a name");
    void *p = heap.allocate(1);
    std::string entry = map_of(p);

    heap.deallocate(p, 1);
    if (entry.find("[anon") == std::string::npos) {
        std::printf("SKIP test_heap_names: needs names of maps, got a kernel without them\n");
        return 77;
    }
    EXPECT(entry.find("[anon:faultless:heap:a name]") != std::string::npos);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && std::strcmp(argv[1], "names") == 0) {
        return a_map_has_its_heaps_name();
    }
    containers_lie_in_it();
    a_container_takes_its_heap_along();
    what_is_filled_ahead_takes_no_fault();
    kinds_are_told_to_the_kernel();
    what_cannot_be_throws();
    threads_share_one();
    a_child_goes_on();
    return 0;
}
