/* Between torch.c and torch_graph.c: what PyTorch's allocator is made of.
 *
 * A device has one pool, and one more for each of PyTorch's private pools: what graphs are captured
 * into, and what `torch.cuda.use_mem_pool` names. */
#ifndef FL_GPU_SHIM_SHIM_H
#define FL_GPU_SHIM_SHIM_H

#include "gpu/pool/pool.h"

enum { FL_TORCH_DEVICES = 64 };

/* Another pool of the device, which it holds open. NULL: fl_gpu_error says why. */
struct fl_gpu_pool *fl_torch_make(int device, bool is_graph);

/* The private pool that `stream` allocates from now; NULL: none. It stays while a begin is not
 * ended. */
struct fl_gpu_pool *fl_torch_graph_of(int device, void *stream);
/* Frees in whichever private pool has it. -ENOENT: none has. */
int fl_torch_graph_free(int device, uint64_t address, void *stream);
/* Private pools that have been released go, those that nothing is allocated in any more. True: one
 * did. */
bool fl_torch_graph_reap(int device);
/* As fl_torch_graph_free. */
int fl_torch_graph_record(uint64_t address, void *stream);

#endif
