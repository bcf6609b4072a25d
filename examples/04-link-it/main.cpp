/* A program that brings the allocator along: nothing is preloaded, and nothing of it is called. */
#include <faultless/faultless.h>

#include <cstdio>
#include <sys/resource.h>
#include <vector>

static long faults()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

int main()
{
    long before = 0;
    for (int step = 0; step < 5; step++) {
        before = faults();
        std::vector<double> batch(8 << 20, 1.0);
        std::vector<double> gradient(batch);
    }
    std::printf("faultless %s, step 4: %ld page faults\n", fl_version(), faults() - before);
}
