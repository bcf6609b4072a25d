"""PyTorch's CUDA tensors from faultless's pools.

    import faultless.torch
    faultless.torch.use()                # before the first CUDA tensor; False: nothing was changed
    ...
    print(faultless.torch.pool().stats())"""
import ctypes
import os
import warnings
from typing import Any, Dict, List, Optional

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
_kept: List[Any] = []   # those of mem_pool's pools
_forgotten: Dict[int, Dict[str, int]] = {}  # of each device, by reset_accumulated_memory_stats
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


def _has_pool(device: int) -> bool:
    """To ask for the pool makes it, and a context on a device that is not used."""
    return gpu.device_stats(device)["pools"] != 0


def _pool_stats(device: int) -> Dict[str, int]:
    return pool(device).stats() if _has_pool(device) else dict.fromkeys(gpu.POOL_FIELDS[1:], 0)


def _totals(s: Dict[str, int]) -> Dict[str, int]:
    """What only rises, but for reset_accumulated_memory_stats."""
    served = s["served_pool_bytes"] + s["served_api_bytes"]
    return {"allocs": s["allocs"], "frees": s["frees"], "chunks": s["driver_allocs"],
            "chunks_back": s["driver_frees"], "bytes": served, "bytes_back": served - s["occupied_bytes"],
            "retries": s["retries"]}


def _memory_stats(device: int) -> Dict[str, Any]:
    """What torch._C._cuda_memoryStats says of PyTorch's own allocator, of our pool's counters. What
    the pool does not count is 0, as with PyTorch's backend cudaMallocAsync."""
    s = _pool_stats(device)
    before = _forgotten.get(device, {})
    n = {name: total - before.get(name, 0) for name, total in _totals(s).items()}
    held, zero = s["occupied_bytes"] + s["free_bytes"], (0, 0, 0, 0)
    blocks = (s["allocs"] - s["frees"], 0, n["allocs"], n["frees"])
    occupied = (s["occupied_bytes"], s["occupied_peak_bytes"], n["bytes"], n["bytes_back"])
    metrics = {
        "allocation": blocks, "active": blocks, "allocated_bytes": occupied, "active_bytes": occupied,
        "requested_bytes": (s["requested_bytes"], 0, 0, 0),
        "segment": (s["driver_allocs"] - s["driver_frees"], 0, n["chunks"], n["chunks_back"]),
        "reserved_bytes": (held, s["held_peak_bytes"], 0, 0),
        "inactive_split": zero, "inactive_split_bytes": zero,
    }

    def named(values: Any) -> Dict[str, int]:
        return dict(zip(("current", "peak", "allocated", "freed"), values))

    result: Dict[str, Any] = {
        name: {"all": named(values), "small_pool": named(zero), "large_pool": named(zero)}
        for name, values in metrics.items()}
    result.update({name: named(zero) for name in ("oversize_allocations", "oversize_segments")})
    result.update(num_alloc_retries=n["retries"], num_ooms=0, num_sync_all_streams=0, max_split_size=-1,
                  num_device_alloc=s["driver_allocs"], num_device_free=s["driver_frees"])
    return result


def _reset_peaks(device: int) -> None:
    if _has_pool(device):
        pool(device).reset_peaks()


def _reset_accumulated(device: int) -> None:
    _forgotten[device] = _totals(_pool_stats(device))


def _bridge_stats(torch: Any) -> None:
    """memory_stats, memory_allocated, max_memory_reserved, memory_summary and the like rest on
    functions which only PyTorch's own allocators have; those of torch.accelerator ask PyTorch's own
    whatever is in its place."""
    instead = {"_cuda_memoryStats": _memory_stats, "_accelerator_getDeviceStats": _memory_stats,
               "_cuda_resetPeakMemoryStats": _reset_peaks, "_accelerator_resetPeakStats": _reset_peaks,
               "_cuda_resetAccumulatedMemoryStats": _reset_accumulated,
               "_accelerator_resetAccumulatedStats": _reset_accumulated,
               "_accelerator_emptyCache": lambda: torch.cuda.empty_cache(),
               "_accelerator_isAllocatorInitialized": lambda: True}
    for name, function in instead.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, function)


def use(strategy: str = "auto", pinned: bool = True) -> bool:
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
    _bridge_stats(torch)
    if pinned:
        _register_pinned(torch)
    return True


def mem_pool(**options: Any) -> Any:
    """torch.cuda.MemPool(**options) whose segments are faultless's:

        with torch.cuda.use_mem_pool(faultless.torch.mem_pool()):
            train()

    PyTorch's own allocator divides them, so that all that rests on it goes on working: snapshots,
    graphs, torch.compile. `faultless.gpu.device_stats` counts them. Not after `use`, which takes
    that allocator's place. Raises faultless.gpu.Error where it cannot be had."""
    import torch
    if _allocator is not None:
        raise gpu.Error("faultless.torch.use has taken the place of PyTorch's allocator")
    if torch.version.cuda is None or not hasattr(torch.cuda, "MemPool"):
        raise gpu.Error(f"PyTorch {torch.__version__} has no torch.cuda.MemPool (2.5 with CUDA has)")
    allocator = torch.cuda.memory.CUDAPluggableAllocator(gpu.library_path(), "fl_gpu_torch_segment_alloc",
                                                         "fl_gpu_torch_segment_free")
    _kept.append(allocator)  # segments may be given back after the pool has gone
    return torch.cuda.MemPool(allocator.allocator(), **options)


def pool(device: int = 0) -> gpu.Pool:
    """The pool of the device's tensors: stats, trim, collect, retire."""
    return gpu.Pool(gpu.library().fl_gpu_torch_pool(device))


def __getattr__(name: str) -> Any:
    if name == "Stager":  # what wants PyTorch to be there
        from .staging import Stager
        return Stager
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
