/* Linked to libfaultless.so. Says by its public interface whether it serves, and under which identity. */
#include "victim.h"

#include "faultless/faultless.h"

#include <sys/auxv.h>

int main(void)
{
    struct fl_stats s = {.size = sizeof s};
    free(malloc(MIB));
    CHECK(fl_stats_read(&s) == 0);
    printf("secure %lu active %llu requests %llu\n", getauxval(AT_SECURE),
           (unsigned long long)s.active, (unsigned long long)s.requests);
    return 0;
}
