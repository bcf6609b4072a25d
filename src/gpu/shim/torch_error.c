/* Out of memory, as PyTorch's own allocator says it: c10::OutOfMemoryError, which Python has as
 * torch.OutOfMemoryError. PyTorch exports its constructor from 2.9 or so on; where it does not, a
 * std::runtime_error, which is a RuntimeError in Python with the same text.
 *
 * There is no C++ here, so the exception is put together by the rules of the Itanium C++ ABI: room
 * from the C++ library, the constructor, then the throw. std::string is libstdc++'s, that of
 * PyTorch's builds. What is not found as it should be is done without.
 * Sources: Itanium C++ ABI, Exception Handling; c10/util/Exception.h. */
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

/* Throws, or returns. */
static void throw_out_of_memory(const char *what)
{
    void *(*allocate)(size_t);
    void (*throw_it)(void *, void *, void (*)(void *));
    construct_fn *construct;
    void **table = symbol_of("libc10.so", "_ZTVN3c1016OutOfMemoryErrorE");
    void *found[3] = {cxx("__cxa_allocate_exception"), cxx("__cxa_throw"),
                      symbol_of("libc10.so",
                                "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112"
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
    memcpy(&destroy, &table[2], sizeof destroy); /* behind its offset and type: the destructor */
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
