/* Linked to libfaultless.so. Says by its public interface whether it serves, and under which
 * identity; and whether there is a device, which a machine's own driver may have too: what counts
 * is whose driver was loaded. */
#include "victim.h"

#include "faultless/gpu.h"

#include <sys/auxv.h>

/* The driver that FAULTLESS_GPU_DRIVER names. */
static int named_driver(void)
{
    char line[512];
    int found = 0;
    struct fl_gpu *gpu;
    FILE *f;

    (void)fl_gpu_open(0, &gpu);
    f = fopen("/proc/self/maps", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        found |= strstr(line, "fake_cuda") != NULL;
    }
    fclose(f);
    return found;
}

int main(void)
{
    struct fl_stats s = {.size = sizeof s};
    free(malloc(MIB));
    CHECK(fl_stats_read(&s) == 0);
    printf("secure %lu active %llu requests %llu driver %d\n", getauxval(AT_SECURE),
           (unsigned long long)s.active, (unsigned long long)s.requests, named_driver());
    return 0;
}
