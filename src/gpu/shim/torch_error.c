/* Out of memory, as PyTorch's own allocator says it: c10::OutOfMemoryError, which Python has as
 * torch.OutOfMemoryError; where PyTorch is not built with libstdc++'s newer std::string (2.5), a
 * std::runtime_error, which is a RuntimeError in Python with the same text.
 *
 * There is no C++ here, so the exception is put together by the rules of the Itanium C++ ABI: room
 * from the C++ library, the constructor, then the throw. The class is c10::Error and nothing more,
 * so it is constructed as that, which every version exports, and gets its own table: libc10_cuda
 * has that where the class is defined in a header alone (2.11), libc10 where it is not (2.15). What
 * is not found as it should be is done without.
 * Sources: Itanium C++ ABI, Virtual Table Layout and Exception Handling; c10/util/Exception.h. */
#include "gpu/shim/shim.h"

#include <dlfcn.h>
#include <string.h>

enum { ROOM = 1024 }; /* bytes; c10::Error has less than 200. More does no harm */

/* c10::SourceLocation, by value. */
struct source_location {
    const char *function, *file;
    uint32_t line;
};

/* std::string, by reference; the constructor leaves it empty or as it was. */
struct cxx_string {
    char *text;
    size_t len;
    char own[16];
};

typedef void construct_fn(void *error, struct source_location at, struct cxx_string *what);

/* The address of a function or of a table in a library that is there; NULL: it is not. */
static void *symbol_of(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    void *found = handle != NULL ? dlsym(handle, name) : NULL;

    if (handle != NULL) {
        (void)dlclose(handle);
    }
    return found;
}

static void *cxx(const char *name)
{
    return symbol_of("libstdc++.so.6", name);
}

/* From the operator new that goes with the delete that frees it: that of the library preloaded
 * first. `text` NULL: there is none. */
static struct cxx_string string_of(const char *text)
{
    void *(*allocate)(size_t);
    void *first = dlsym(RTLD_DEFAULT, "_Znwm"), *found = first != NULL ? first : cxx("_Znwm");
    struct cxx_string s = {.len = strlen(text)};

    memcpy(&allocate, &found, sizeof allocate);
    if (found != NULL) {
        s.text = allocate(s.len + 1);
        memcpy(s.text, text, s.len + 1);
        memcpy(s.own, &s.len, sizeof s.len); /* its capacity */
    }
    return s;
}

/* That of c10::OutOfMemoryError: its offset, its type, its destructor, ... NULL: there is none. */
static void **table_of_out_of_memory(void)
{
    static const char name[] = "_ZTVN3c1016OutOfMemoryErrorE";
    void **table = symbol_of("libc10.so", name);

    return table != NULL ? table : symbol_of("libc10_cuda.so", name);
}

/* Throws, or returns. */
static void throw_out_of_memory(const char *what)
{
    void *(*allocate)(size_t);
    void (*throw_it)(void *, void *, void (*)(void *));
    construct_fn *construct;
    void **table = table_of_out_of_memory(), *first;
    void *found[3] = {cxx("__cxa_allocate_exception"), cxx("__cxa_throw"),
                      symbol_of("libc10.so", "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112"
                                             "basic_stringIcSt11char_traitsIcESaIcEEE")};
    void (*destroy)(void *);

    if (table == NULL || found[0] == NULL || found[1] == NULL || found[2] == NULL) {
        return;
    }
    memcpy(&allocate, &found[0], sizeof allocate);
    memcpy(&throw_it, &found[1], sizeof throw_it);
    memcpy(&construct, &found[2], sizeof construct);
    struct cxx_string s = string_of(what);
    if (s.text == NULL) {
        return;
    }
    void *error = allocate(ROOM);
    construct(error, (struct source_location){"fl_gpu_torch_alloc", "faultless", 0}, &s);
    first = &table[2]; /* behind its offset and type: what an object points to */
    memcpy(error, &first, sizeof first);
    memcpy(&destroy, first, sizeof destroy);
    throw_it(error, table[1], destroy);
}

void fl_torch_throw(const char *what, bool no_memory)
{
    void (*throw_error)(const char *what) = NULL;
    void *found;

    if (no_memory) {
        throw_out_of_memory(what);
    }
    found = cxx("_ZSt21__throw_runtime_errorPKc");
    memcpy(&throw_error, &found, sizeof throw_error);
    if (throw_error != NULL) {
        throw_error(what);
    }
}
