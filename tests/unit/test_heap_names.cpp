/* smaps shows a heap's name, where the kernel keeps names of maps; else 77. */
#include "faultless/heap.hpp"

#include <cstdio>
#include <fstream>
#include <string>

static const char name[] = "[anon:faultless:heap:a name]";

/* The first line of smaps' entry for the map that `p` lies in. */
static std::string map_of(const void *p)
{
    std::ifstream smaps("/proc/self/smaps");
    std::string line;

    while (std::getline(smaps, line)) {
        unsigned long from = 0, to = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2 &&
            reinterpret_cast<std::uintptr_t>(p) - from < to - from) {
            return line;
        }
    }
    return "";
}

int main()
{
    faultless::heap heap(std::size_t{2} << 20, "a name");
    void *p = heap.allocate(1);
    std::string line = map_of(p);

    heap.deallocate(p, 1);
    if (line.find("[anon") == std::string::npos) {
        std::printf("SKIP test_heap_names: needs names of maps, got a kernel without them\n");
        return 77;
    }
    if (line.find(name) == std::string::npos) {
        std::fprintf(stderr, "test_heap_names: %s is not in: %s\n", name, line.c_str());
        return 1;
    }
    return 0;
}
