"""PyTorch's CUDA tensors from faultless's pools.

    import faultless.torch
    faultless.torch.use("planned")       # before the first CUDA tensor; False: nothing was changed

    for batch in data:
        with faultless.step():           # or faultless.torch.pool().step()
            train(batch)

    print(faultless.torch.pool().stats())

Backward passes run in threads of their own; what they ask for belongs to the step as well."""
import ctypes
import os
import warnings
from typing import Any, Optional

from . import gpu

# What CUDAPluggableAllocator may be told, and the library's functions for it: fl_gpu_torch_...
HOOKS = {
    "set_init_fn": "init",
    "set_reset_fn": "empty_cache",
    "set_memory_fraction_fn": "memory_fraction",
    "set_base_alloc_fn": "base_alloc",
    "set_record_stream_fn": "record_stream",
    "set_begin_allocate_to_pool": "begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "end_allocate_to_pool",
    "set_release_pool": "release_pool",
}
_SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")

_allocator: Any = None  # PyTorch's object, once use() has succeeded
_warned = False


def _refuse(why: str) -> bool:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"faultless.torch.use: {why}; PyTorch's memory stays as it is",
                      RuntimeWarning, stacklevel=3)
    return False


def _obstacle(torch: Any) -> Optional[str]:
    """Why it cannot be; None: it can."""
    if gpu._loaded is None:
        return "faultless is not preloaded (start the program with `faultless python`)"
    if torch.version.cuda is None:
        return "this PyTorch is built without CUDA"
    memory = getattr(getattr(torch, "cuda", None), "memory", None)
    if getattr(memory, "CUDAPluggableAllocator", None) is None:
        return f"PyTorch {torch.__version__} has no pluggable allocator (2.0 has)"
    if not torch.cuda.is_available():
        return "PyTorch finds no CUDA device"
    if torch.cuda.is_initialized():
        return "CUDA tensors were made already; call it before the first"
    return None


def _plug_in(torch: Any) -> Any:
    allocator = torch.cuda.memory.CUDAPluggableAllocator(gpu.library_path(), "fl_gpu_torch_alloc",
                                                         "fl_gpu_torch_free")
    target = allocator.allocator()
    for setter, name in HOOKS.items():
        function = getattr(gpu.library(), "fl_gpu_torch_" + name)
        if hasattr(target, setter):  # younger than the pair itself: 2.3 and later
            getattr(target, setter)(ctypes.cast(function, ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(allocator)
    return allocator


def _register_pinned(torch: Any) -> bool:
    """Has PyTorch take pinned memory by malloc, which is ours, and register it. False: as before."""
    if any("pinned" in os.environ.get(name, "") for name in _SETTINGS):
        return False
    for owner, name in ((torch._C, "_accelerator_setAllocatorSettings"),
                        (torch.cuda.memory, "_set_allocator_settings")):
        setter = getattr(owner, name, None)
        if setter is not None:
            try:
                setter("pinned_use_cuda_host_register:True")
            except (RuntimeError, ValueError):
                return False  # older than the setting
            return True
    return False


def use(strategy: str = "planned", pinned: bool = True) -> bool:
    """CUDA tensors of this process come from faultless's pools from now on.

    strategy  one of faultless.gpu.STRATEGIES; "auto": what FAULTLESS_GPU_STRATEGY says
    pinned    pin_memory() takes huge pages and registers them (pinned_use_cuda_host_register),
              unless PYTORCH_CUDA_ALLOC_CONF says something of pinned memory

    Call it before the first CUDA tensor. Where it cannot be (no CUDA in this PyTorch, no device,
    another allocator in use, faultless is not preloaded), it warns once, changes nothing and returns False."""
    global _allocator
    if strategy not in gpu.STRATEGIES:
        raise ValueError(f"no strategy {strategy!r}: {', '.join(gpu.STRATEGIES)}")
    if _allocator is not None:
        return _refuse("it has been called before")
    try:
        import torch
    except ImportError:
        return _refuse("there is no PyTorch")
    why = _obstacle(torch)
    if why is not None:
        return _refuse(why)
    if gpu.library().fl_gpu_torch_use(gpu.STRATEGIES.index(strategy)) != 0:
        return _refuse(gpu.library().fl_gpu_error().decode())
    try:
        _allocator = _plug_in(torch)
    except (AttributeError, OSError, RuntimeError) as error:  # another allocator has served already
        return _refuse(str(error))
    if pinned:
        _register_pinned(torch)
    return True


def pool(device: int = 0) -> gpu.Pool:
    """The pool of the device's tensors: step, stats, trim, collect, retire."""
    return gpu.Pool(gpu.library().fl_gpu_torch_pool(device))


def __getattr__(name: str) -> Any:
    if name == "Stager":  # what wants PyTorch to be there
        from .staging import Stager
        return Stager
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
