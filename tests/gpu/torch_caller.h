/* What PyTorch's C++ does with the hooks that it is given as addresses. */
#ifndef FL_TESTS_GPU_TORCH_CALLER_H
#define FL_TESTS_GPU_TORCH_CALLER_H

#include "faultless/gpu.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates; what an exception says goes to `what`. */
void *torch_alloc(ssize_t size, int device, void *stream, char *what, size_t room);
/* Was the last one c10::OutOfMemoryError? And how many errors are there now. */
int torch_caught_memory(void);
int torch_errors(void);
/* Allocations on `stream`, NULL: on all, go to that pool. */
void torch_begin(int device, unsigned long long first, unsigned long long second, void *stream);
void torch_end(int device, unsigned long long first, unsigned long long second);
void torch_release(int device, unsigned long long first, unsigned long long second);
/* Filters that are there now. */
int torch_filters(void);
/* Called by a filter that is asked. NULL: nothing is. */
void torch_when_asked(void (*fn)(void));
/* Filters throw when they are asked about `stream`; NULL: none does. */
void torch_refuse(void *stream);

#ifdef __cplusplus
}
#endif
#endif
