/* Edges of a graph, and what each vertex reaches, in heaps of their own: one filled ahead, so that
 * the loop that builds the index takes no page fault, and one by touch for what grows. */
#include <faultless/heap.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unordered_map>
#include <vector>

namespace
{

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::uint32_t vertices = 100000, edges = 4000000;

struct edge {
    std::uint32_t from, to;
};

long faults()
{
    struct rusage r = {};

    (void)getrusage(RUSAGE_SELF, &r);
    return r.ru_minflt;
}

/* What of it is in memory, as the kernel tells in /proc/PID/smaps. */
void show(const char *name)
{
    std::ifstream smaps("/proc/self/smaps");
    std::string line;
    bool ours = false, found = false;

    while (std::getline(smaps, line)) {
        if (line.find('-') < line.find(' ')) {
            ours = line.find(name) != std::string::npos;
        }
        if (ours && line.compare(0, 4, "Rss:") == 0) {
            std::printf("%s %s\n", name, line.c_str());
            found = true;
        }
    }
    if (!found) {
        std::printf("%s: this kernel keeps no names of maps\n", name);
    }
}

std::uint32_t next(std::uint64_t &state)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 33);
}

} // namespace

int main()
{
    faultless::heap table(64 * mib, "edges", FL_HEAP_PREFAULTED);
    faultless::heap index(64 * mib, "index");
    std::uint64_t seed = 1;

    std::vector<edge, faultless::allocator<edge>> all(table);
    long before = faults();
    all.reserve(edges);
    for (std::uint32_t i = 0; i < edges; i++) {
        all.push_back({next(seed) % vertices, next(seed) % vertices});
    }
    std::sort(all.begin(), all.end(), [](edge a, edge b) { return a.from < b.from; });
    std::printf("%u edges built and sorted, %ld page faults\n", edges, faults() - before);

    /* Many small blocks: a pool in front of the heap. */
    faultless::heap_resource upstream(index);
    std::pmr::unsynchronized_pool_resource pool(&upstream);
    std::pmr::unordered_map<std::uint32_t, std::uint32_t> first(&pool);
    for (std::uint32_t i = edges; i-- > 0;) {
        first[all[i].from] = i;
    }
    std::printf("%zu vertices have edges\n", first.size());
    show("faultless:heap:edges");
    show("faultless:heap:index");
    std::printf("index: %llu KiB in %llu blocks\n",
                static_cast<unsigned long long>(index.stats().used_bytes >> 10),
                static_cast<unsigned long long>(index.stats().blocks));
    return 0;
}
