"""CuPy's arrays from faultless's pools.

    import faultless.cupy
    faultless.cupy.use()                 # False: nothing was changed

CuPy names no stream when it frees, so memory is given out again when the device is past the free.
Streams that are made with non_blocking=True are not waited for: keep arrays of theirs until they
are synchronised."""
import ctypes
import warnings
from typing import Any

from . import gpu

_warned = False
_keep: Any = None


def _refuse(why: str) -> bool:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"faultless.cupy.use: {why}; CuPy's memory stays as it is", RuntimeWarning,
                      stacklevel=3)
    return False


def out_of_memory(cupy: Any, size: int) -> MemoryError:
    """As CuPy's own pool says it, with our reason."""
    text = f"Out of memory allocating {size:,} bytes of the device: {gpu.library().fl_gpu_error().decode()}"
    kind = getattr(getattr(cupy.cuda, "memory", None), "OutOfMemoryError", None)
    error: MemoryError = kind(size, 0) if kind is not None else MemoryError()
    error.args = (text,)
    return error


def allocator(cupy: Any) -> Any:
    """What cupy.cuda.set_allocator takes. CuPy looks at no result, so it is looked at here."""
    def address(name: str) -> Any:
        return ctypes.cast(getattr(gpu.library(), name), ctypes.c_void_p).value

    pair = cupy.cuda.CFunctionAllocator(0, address("fl_gpu_cupy_alloc"),
                                        address("fl_gpu_cupy_free"), gpu.library())

    def malloc(size: int) -> Any:
        pointer = pair.malloc(size)
        if size > 0 and pointer.ptr == 0:
            raise out_of_memory(cupy, size)
        return pointer

    return malloc


def use() -> bool:
    """CuPy's arrays of this process come from faultless's pools from now on. Where it cannot be, it
    warns once, changes nothing and returns False."""
    global _keep
    try:
        import cupy
    except ImportError:
        return _refuse("there is no CuPy")
    if gpu._loaded is None:
        return _refuse("faultless is not preloaded (start the program with `faultless python`)")
    if not cupy.is_available():
        return _refuse("CuPy finds no CUDA device")
    _keep = allocator(cupy)
    cupy.cuda.set_allocator(_keep)
    return True


def pool(device: int = 0) -> gpu.Pool:
    """The pool of the device's arrays: stats, trim, collect."""
    return gpu.Pool(gpu.library().fl_gpu_cupy_pool(device))
