/* What glibc's tests take from inside of glibc, as programs outside of it have it. */
#include <limits.h>

#define TIMEOUTFACTOR 1 /* the driver's; the environment's goes before it */
#define libc_hidden_def(name)
#define libc_hidden_proto(name)
#define attribute_hidden

/* Of glibc's build folder. No malloc test uses them. */
#define BINDIR_PATH "/nonexistent"
#define COMPLOCALEDIR_PATH "/nonexistent"
#define INSTDIR_PATH "/nonexistent"
#define LIBDIR_PATH "/nonexistent"
#define OBJDIR_ELF_LDSO_PATH "/nonexistent"
#define OBJDIR_PATH "/nonexistent"
#define ROOTSBINDIR_PATH "/nonexistent"
#define SBINDIR_PATH "/nonexistent"
#define SLIBDIR_PATH "/nonexistent"
#define SRCDIR_PATH "/nonexistent"
