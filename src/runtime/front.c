/* What stands before us. Where the program's free is another's, each block of ours must reach our
 * free through that one: nothing is served until one of the names that stand before us has called
 * ours, by RTLD_NEXT or by libc's other names. An object that passes requests on does so at once;
 * an allocator of its own, or one that asks libc by a handle, never does, and then all is as
 * without us. What the program calls itself is no sign. */
#include "runtime/runtime.h"

/* The route's threshold meanwhile. A child of fork that gives up has another one, and keeps it. */
static const size_t waiting = SIZE_MAX - 1;
static struct fl_next behind;
static size_t threshold;

/* Other threads may be reading what is written: both are right. */
#define SET(slot, f) __atomic_store_n(&fl_route.next.slot, f, __ATOMIC_RELAXED)

/* Words, not the struct: what is not different is not written. */
static FL_COLD void begin_to_serve(void)
{
    __atomic_store_n(&fl_runtime.shadowed_by, NULL, __ATOMIC_RELAXED);
    SET(malloc, behind.malloc);
    SET(calloc, behind.calloc);
    SET(realloc, behind.realloc);
    SET(free, behind.free);
    SET(libc_free, behind.libc_free);
    SET(libc_realloc, behind.libc_realloc);
    size_t was = waiting;
    (void)__atomic_compare_exchange_n(&fl_route.threshold, &was, threshold, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED);
}

static void *first_malloc(size_t n)
{
    begin_to_serve();
    return n < threshold ? behind.malloc(n) : fl_malloc_large(n);
}

static void *first_calloc(size_t count, size_t size)
{
    begin_to_serve(); /* the caller knows that the product is a number */
    return count * size < threshold ? behind.calloc(count, size) : fl_calloc_large(count * size);
}

static void *first_realloc(void *p, size_t n)
{
    begin_to_serve();
    return n < threshold ? behind.realloc(p, n) : fl_realloc_any(p, n);
}

static void first_free(void *p)
{
    begin_to_serve();
    behind.free(p);
}

static void first_libc_free(void *p)
{
    begin_to_serve();
    behind.libc_free(p);
}

static void *first_libc_realloc(void *p, size_t n)
{
    begin_to_serve();
    return behind.libc_realloc(p, n);
}

static void say_shadowed(void)
{
    char line[480];
    struct fl_text t = fl_text_on(line, sizeof line);

    if (fl_runtime.shadowed_by != NULL && fl_runtime.options.value[FL_OPTION_confirm] != 0) {
        fl_text_str(&t, "not served, unless that passes requests on: the program's malloc is "
                        "that of ");
        fl_text_str(&t, fl_runtime.shadowed_by);
        fl_text_str(&t, ", which comes first");
        fl_say(line);
    }
}

void fl_find_first(void)
{
    fl_load();
    fl_runtime.shadowed_by = fl_first_of("malloc");
    say_shadowed();
    if (fl_route.threshold == SIZE_MAX) {
        return;
    }
    behind = fl_route.next;
    threshold = fl_route.threshold;
    if (fl_runtime.shadowed_by != NULL) {
        fl_live_start_shadowed();
        SET(malloc, first_malloc);
    }
    if (fl_first_of("free") == NULL) {
        return;
    }
    SET(free, first_free);
    SET(libc_free, first_libc_free);
    SET(libc_realloc, first_libc_realloc);
    if (fl_first_of("calloc") != NULL) {
        SET(calloc, first_calloc);
    }
    if (fl_first_of("realloc") != NULL) {
        SET(realloc, first_realloc);
    }
    __atomic_store_n(&fl_route.threshold, waiting, __ATOMIC_RELEASE);
}
