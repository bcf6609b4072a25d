/* What other libraries' allocator hooks are made of: pools.c (a pool a device), cupy.c, and for
 * PyTorch torch.c, torch_graph.c, torch_error.c.
 *
 * PyTorch's devices have one pool, and one more for each of its private pools: what graphs are
 * captured into. */
#ifndef FL_GPU_SHIM_SHIM_H
#define FL_GPU_SHIM_SHIM_H

#include "gpu/pool/pool.h"

#include <pthread.h>

struct fl_shim {
    struct fl_gpu_pool *_Atomic pool[FL_GPU_DEVICES];
    pthread_mutex_t mutex;
    unsigned making; /* threads that make a pool now. Lock: the mutex */
    void (*choose)(struct fl_gpu_pool_options *o); /* changes the environment's options */
    bool is_blind;                                 /* as in struct fl_gpu_pool */
};

/* The device's pool. NULL: there is none, or it cannot be made, and fl_gpu_error says why. */
struct fl_gpu_pool *fl_shim_pool(struct fl_shim *shim, int device, bool may_make);
/* Another one, which holds the device (`*out`, may be NULL) open. NULL likewise. */
struct fl_gpu_pool *fl_shim_make(const struct fl_shim *shim, int device, struct fl_gpu **out);
/* `what` and fl_gpu_error, once for each `told`: the caller goes on, and says less. */
void fl_shim_complain(_Atomic bool *told, const char *what);

/* torch_error.c: throws a C++ exception, of PyTorch's class for it when there is no memory. Returns
 * when there is no C++ library. */
void fl_torch_throw(const char *what, bool no_memory);
/* A private pool of the device, which it holds open. NULL: fl_gpu_error says why. */
struct fl_gpu_pool *fl_torch_make(int device);

/* Does `stream` allocate from a private pool now? */
bool fl_torch_graph_routes(int device, void *stream);
/* From that pool, which stays meanwhile, as fl_gpu_pool_alloc. -ENOENT: there is none. */
int fl_torch_graph_take(int device, size_t size, void *stream, uint64_t *out);
/* Frees in whichever private pool has it. -ENOENT: none has. */
int fl_torch_graph_free(int device, uint64_t address, void *stream);
/* Private pools that have been released go, those that nothing is allocated in any more. True: one
 * did. */
bool fl_torch_graph_reap(int device);
/* As fl_torch_graph_free. */
int fl_torch_graph_record(uint64_t address, void *stream);

#endif
