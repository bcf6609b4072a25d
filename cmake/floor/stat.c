/* stat(2) as programs had it before glibc 2.33: libc's function took the version of the struct. */
#include "floor.h"

struct stat;

#ifdef __x86_64__
enum { VERSION = 1 };
#else
enum { VERSION = 0 };
#endif

FL_FLOOR(__xstat, "2.2.5")
FL_FLOOR(__fxstat, "2.2.5")

int __xstat(int version, const char *path, struct stat *s);
int __fxstat(int version, int fd, struct stat *s);
int stat(const char *path, struct stat *s);
int fstat(int fd, struct stat *s);

__attribute__((visibility("hidden"))) int stat(const char *path, struct stat *s)
{
    return __xstat(VERSION, path, s);
}

__attribute__((visibility("hidden"))) int fstat(int fd, struct stat *s)
{
    return __fxstat(VERSION, fd, s);
}
