/* A library preloaded behind ours: its constructor runs before ours does. */
#include "victim.h"

#include <dlfcn.h>

static char *large, *small;

__attribute__((constructor(101))) static void before_any_thread(void)
{
    large = written(3 * MIB, 1);
    small = calloc(1, 100);
    CHECK(dlsym(RTLD_NEXT, "no_such_name_anywhere") == NULL && dlerror() != NULL);
    large = realloc(large, 6 * MIB);
    CHECK(is_stamped_part(large, 3 * MIB, 3 * MIB, 1));
}

__attribute__((destructor(101))) static void after_any_thread(void)
{
    free(large);
    free(small);
    free(malloc(2 * MIB));
}
