/* Before main and after it: constructors, destructors, atexit, dlsym, descriptors that are
 * closed. */
#include "victim.h"

#include <dlfcn.h>

static char *from_constructor, *small_from_constructor, *for_atexit, *for_destructor;
static int late;

__attribute__((constructor(101))) static void first(void)
{
    if (getenv("VICTIM_CLOSES") != NULL) {
        close_range(3, ~0U, 0);
    }
    from_constructor = written(3 * MIB, 1);
    small_from_constructor = written(100, 2);
    for_destructor = calloc(1, 5 * MIB);
}

__attribute__((destructor(101))) static void last(void)
{
    if (late) {
        CHECK(is_stamped(for_destructor, 5 * MIB, 4));
        free(realloc(for_destructor, 7 * MIB));
        char *p = written(2 * MIB, 5);
        CHECK(is_stamped(p, 2 * MIB, 5));
        free(p);
    }
}

static void at_exit(void)
{
    CHECK(is_stamped(for_atexit, 4 * MIB, 3));
    free(for_atexit);
    free(malloc(MIB));
}

MODE(before_main)
{
    CHECK(is_stamped(from_constructor, 3 * MIB, 1) && is_stamped(small_from_constructor, 100, 2));
    free(realloc(from_constructor, 100 * KIB));
    free(realloc(small_from_constructor, MIB));
}

MODE(after_main)
{
    late = 1;
    for_atexit = written(4 * MIB, 3);
    stamp(for_destructor, 5 * MIB, 4);
    CHECK(atexit(at_exit) == 0);
    exit(0);
}

MODE(missing_symbol)
{
    CHECK(dlsym(RTLD_DEFAULT, "no_such_name_anywhere") == NULL);
    const char *e = dlerror();
    CHECK(e != NULL && strstr(e, "no_such_name_anywhere") != NULL);
    CHECK(dlerror() == NULL);
    CHECK(dlopen("/no/such/library.so", RTLD_NOW) == NULL && dlerror() != NULL);
    free(malloc(MIB));
}

/* The loader's own blocks (thread-local storage, link maps) come from before we were there, and are
 * freed by libc. */
static __thread char much[300 * 1024];
static void *touch_much(void *arg)
{
    much[5] = 1;
    return arg;
}
MODE(loaders_blocks)
{
    for (int i = 0; i < 50; i++) {
        void *lib = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        CHECK(lib != NULL && dlclose(lib) == 0);
        lib = dlmopen(LM_ID_BASE, "libutil.so.1", RTLD_NOW);
        if (lib != NULL) {
            dlclose(lib);
        }
        in_thread(touch_much, NULL);
    }
    free(malloc(MIB));
}

MODE(quick)
{
    free(malloc(MIB));
    quick_exit(0);
}

MAIN()
