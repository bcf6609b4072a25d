/* Linked for one address, it takes that of malloc: the loader then has the program's own stub stand
 * for malloc in every object. Asks for nothing large. */
#include "victim.h"

#include <dlfcn.h>

int main(void)
{
    void *(*volatile take)(size_t) = malloc;
    Dl_info stub, self;

    CHECK(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &stub) != 0 && dladdr((void *)main, &self) != 0);
    CHECK(stub.dli_fbase == self.dli_fbase);
    free(take(100));
    return 0;
}
