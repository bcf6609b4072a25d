"""The pools of GPU memory in the library that this process runs under: what they hold, steps, trims.

    import faultless.gpu
    print(faultless.gpu.device_stats(0))

Handles are the library's own and stay for the process's life; nothing here opens a device unasked."""
import ctypes
from typing import Dict, Optional

# struct fl_gpu_pool_stats and struct fl_gpu_device_stats of <faultless/gpu.h>, in their order.
POOL_FIELDS = (
    "size", "occupied_bytes", "free_bytes", "served_pool_bytes", "served_api_bytes",
    "requested_bytes", "occupied_peak_bytes", "held_peak_bytes", "allocs", "frees", "hits",
    "cross_stream_hits", "waits", "planned_hits", "inplace", "driver_allocs", "driver_frees",
    "driver_ns", "implicit_syncs", "events", "event_queries", "gc_batches", "gc_bytes", "trims",
    "retries", "quarantined", "capture_refusals",
)
DEVICE_FIELDS = (
    "size", "held_bytes", "held_peak_bytes", "limit_bytes", "pools", "occupied_bytes",
    "free_bytes", "requested_bytes", "allocs", "hits", "planned_hits", "driver_allocs",
    "driver_ns", "implicit_syncs", "pinned_pools", "pinned_bytes", "mirrors", "mirror_bytes",
    "copies", "copied_bytes", "stalls",
)
# enum fl_gpu_strategy, in its order.
STRATEGIES = ("auto", "naive", "round", "unpooled", "naive_best_fit", "auto_growth", "planned",
              "driver")

_PoolStats = ctypes.c_uint64 * len(POOL_FIELDS)
_DeviceStats = ctypes.c_uint64 * len(DEVICE_FIELDS)


def _find() -> Optional[ctypes.CDLL]:
    loaded = ctypes.CDLL(None)
    try:
        for name in ("fl_gpu_torch_pool", "fl_gpu_cupy_pool"):
            getattr(loaded, name).argtypes = [ctypes.c_int]
            getattr(loaded, name).restype = ctypes.c_void_p
        loaded.fl_gpu_error.restype = ctypes.c_char_p
        loaded.fl_gpu_torch_use.argtypes = [ctypes.c_int]
        loaded.fl_gpu_pool_step.argtypes = [ctypes.c_void_p]
        loaded.fl_gpu_pool_collect.argtypes = [ctypes.c_void_p]
        loaded.fl_gpu_pool_stats.argtypes = [ctypes.c_void_p, ctypes.POINTER(_PoolStats)]
        loaded.fl_gpu_pool_trim.argtypes = [ctypes.c_void_p, ctypes.c_size_t,
                                            ctypes.POINTER(ctypes.c_size_t)]
        loaded.fl_gpu_pool_stream_retire.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        loaded.fl_gpu_device_stats.argtypes = [ctypes.c_int, ctypes.POINTER(_DeviceStats)]
    except AttributeError:
        return None
    return loaded


_loaded = _find()


class Error(RuntimeError):
    """A call of the library's that failed: its status and its text."""


def library() -> ctypes.CDLL:
    """The loaded library. Raises Error where the process does not run under it."""
    if _loaded is None:
        raise Error("faultless is not preloaded: start the program with `faultless python`")
    return _loaded


class _Place(ctypes.Structure):  # Dl_info of <dlfcn.h>
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def library_path() -> str:
    """The file of the loaded library, by which dlopen(3) finds what is loaded."""
    place = _Place()
    address = ctypes.cast(library().fl_gpu_error, ctypes.c_void_p)
    ctypes.CDLL(None).dladdr(address, ctypes.byref(place))
    return place.file.decode()


def check(status: int) -> None:
    """Raises Error with the library's text unless `status` is 0."""
    if status != 0:
        raise Error(f"{library().fl_gpu_error().decode()} ({status})")


class Pool:
    """A pool that the library keeps for another one: `faultless.torch.pool`, `faultless.cupy.pool`."""

    def __init__(self, handle: Optional[int]) -> None:
        if not handle:
            raise Error(library().fl_gpu_error().decode())
        self.handle: int = handle

    def step(self) -> None:
        """A step begins: planned pools learn and replay what is asked for until the next one."""
        check(library().fl_gpu_pool_step(self.handle))

    def stats(self) -> Dict[str, int]:
        raw = _PoolStats(ctypes.sizeof(_PoolStats))
        check(library().fl_gpu_pool_stats(self.handle, ctypes.byref(raw)))
        return dict(zip(POOL_FIELDS[1:], raw[1:]))

    def trim(self, keep: int = 0) -> int:
        """Gives whole chunks that are free back to the driver; returns how many bytes."""
        released = ctypes.c_size_t()
        check(library().fl_gpu_pool_trim(self.handle, keep, ctypes.byref(released)))
        return released.value

    def collect(self) -> None:
        """Reclaims the freed blocks that wait (FAULTLESS_GPU_GC_GB)."""
        check(library().fl_gpu_pool_collect(self.handle))

    def retire(self, stream: int) -> None:
        """Before a stream is destroyed that lasts, or that record_stream named: its handle
        (`torch.cuda.Stream.cuda_stream`, `cupy.cuda.Stream.ptr`)."""
        check(library().fl_gpu_pool_stream_retire(self.handle, stream))


def device_stats(device: int = 0) -> Dict[str, int]:
    """What pools and mirrors of one device have together, as `struct fl_gpu_device_stats`."""
    raw = _DeviceStats(ctypes.sizeof(_DeviceStats))
    check(library().fl_gpu_device_stats(device, ctypes.byref(raw)))
    return dict(zip(DEVICE_FIELDS[1:], raw[1:]))
