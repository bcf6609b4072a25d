/* A filter of streams as C++ hands it over: std::function<bool(cudaStream_t)>. Its layout is
 * libstdc++'s, that of PyTorch's own builds; tests/gpu/torch_caller.cpp holds it against the
 * compiler's. */
#ifndef FL_GPU_SHIM_CXX_FILTER_H
#define FL_GPU_SHIM_CXX_FILTER_H

#include <stdbool.h>
#include <stddef.h>

enum { FL_CXX_CLONE = 2, FL_CXX_DESTROY = 3 }; /* std::_Manager_operation */

struct fl_cxx_filter {
    void *functor[2];
    bool (*manage)(void *to, const void *from, int what); /* NULL: empty */
    bool (*invoke)(const void *functor, void **stream);
};

/* False: `from` is empty, and may not be called. NULL lets every stream through. */
static inline bool fl_cxx_filter_copy(struct fl_cxx_filter *to, const struct fl_cxx_filter *from)
{
    if (from == NULL || from->manage == NULL) {
        return from == NULL;
    }
    (void)from->manage(to->functor, from->functor, FL_CXX_CLONE);
    to->manage = from->manage;
    to->invoke = from->invoke;
    return true;
}

static inline void fl_cxx_filter_destroy(struct fl_cxx_filter *f)
{
    if (f->manage != NULL) {
        (void)f->manage(f->functor, f->functor, FL_CXX_DESTROY);
    }
}

/* May throw. */
static inline bool fl_cxx_filter_passes(const struct fl_cxx_filter *f, void *stream)
{
    return f->invoke == NULL || f->invoke(f->functor, &stream);
}

#endif
