/* Linked to libfaultless.so. Says by its public interface whether it serves, and under which
 * identity; and whether there is a device, which a machine's own driver may have too: what counts
 * is whose driver was loaded. */
#include "victim.h"

#include "faultless/gpu.h"

#include <sys/auxv.h>

/* The driver that FAULTLESS_GPU_DRIVER names. */
static int named_driver(void)
{
    struct fl_gpu *gpu;

    (void)fl_gpu_open(0, &gpu);
    return maps_have("fake_cuda");
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
