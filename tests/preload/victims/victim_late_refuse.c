/* An mprotect that is refused, as under a policy that keeps a program's code and tables as they
 * are. The dynamic linker has its own. */
#include <errno.h>
#include <stddef.h>

int mprotect(void *p, size_t n, int prot)
{
    (void)p, (void)n, (void)prot;
    errno = EACCES;
    return -1;
}
