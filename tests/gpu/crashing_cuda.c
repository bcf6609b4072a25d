/* The fake driver with one call that crashes: a library before it, linked with it. */
#include <stdlib.h>

typedef int call(void *stream);
call cuStreamQuery;

int cuStreamQuery(void *stream)
{
    (void)stream;
    abort();
}
