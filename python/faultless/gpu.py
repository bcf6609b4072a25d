"""The pools of GPU memory in the library that this process runs under: what they hold, trims.

    import faultless.gpu
    print(faultless.gpu.device_stats(0))

Handles are the library's own and stay for the process's life; nothing here opens a device unasked."""
import ctypes
import weakref
from typing import Dict, Optional

# struct fl_gpu_pool_stats and struct fl_gpu_device_stats of <faultless/gpu.h>, in their order.
POOL_FIELDS = (
    "size", "occupied_bytes", "free_bytes", "served_pool_bytes", "served_api_bytes",
    "requested_bytes", "occupied_peak_bytes", "held_peak_bytes", "allocs", "frees", "hits",
    "cross_stream_hits", "waits", "inplace", "driver_allocs", "driver_frees",
    "driver_ns", "implicit_syncs", "events", "event_queries", "gc_batches", "gc_bytes", "trims",
    "retries", "quarantined", "capture_refusals",
)
DEVICE_FIELDS = (
    "size", "held_bytes", "held_peak_bytes", "limit_bytes", "pools", "occupied_bytes",
    "free_bytes", "requested_bytes", "allocs", "hits", "driver_allocs",
    "driver_ns", "implicit_syncs", "pinned_pools", "pinned_bytes", "mirrors", "mirror_bytes",
    "copies", "copied_bytes", "stalls",
)
# enum fl_gpu_strategy, in its order.
STRATEGIES = ("auto", "naive", "round", "unpooled", "naive_best_fit", "auto_growth")


class SlotOfMirror(ctypes.Structure):  # struct fl_gpu_slot
    _fields_ = [("offset", ctypes.c_size_t), ("size", ctypes.c_size_t), ("align", ctypes.c_size_t),
                ("input", ctypes.c_bool)]


class MirrorOptions(ctypes.Structure):  # struct fl_gpu_mirror_options
    _fields_ = [("size", ctypes.c_size_t), ("context", ctypes.c_void_p),
                ("slot", ctypes.POINTER(SlotOfMirror)), ("count", ctypes.c_size_t),
                ("inputs", ctypes.c_uint),
                ("coalesce_gap", ctypes.c_size_t), ("numa_node", ctypes.c_int),
                ("threads", ctypes.c_uint), ("fork", ctypes.c_int)]


class MirrorMap(ctypes.Structure):  # struct fl_gpu_mirror_map
    _fields_ = [("host", ctypes.c_size_t), ("len", ctypes.c_size_t), ("delta", ctypes.c_uint64)]


_PoolStats = ctypes.c_uint64 * len(POOL_FIELDS)
_DeviceStats = ctypes.c_uint64 * len(DEVICE_FIELDS)


def _declare_mirror(loaded: ctypes.CDLL) -> None:
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    loaded.fl_gpu_open.argtypes = [ctypes.c_int, ctypes.POINTER(pointer)]
    loaded.fl_gpu_close.argtypes = [pointer]
    loaded.fl_gpu_mirror_defaults.argtypes = [ctypes.POINTER(MirrorOptions)]
    loaded.fl_gpu_mirror_create.argtypes = [pointer, ctypes.POINTER(MirrorOptions),
                                            ctypes.POINTER(pointer)]
    loaded.fl_gpu_mirror_destroy.argtypes = [pointer]
    loaded.fl_gpu_mirror_map.argtypes = [pointer]
    loaded.fl_gpu_mirror_map.restype = ctypes.POINTER(MirrorMap)
    loaded.fl_gpu_mirror_begin.argtypes = [pointer, ctypes.POINTER(pointer)]
    loaded.fl_gpu_mirror_push_range.argtypes = [pointer, pointer, size, pointer]
    loaded.fl_gpu_mirror_read.argtypes = [pointer, ctypes.c_int, ctypes.c_uint64, pointer, size,
                                          pointer]


def _find() -> Optional[ctypes.CDLL]:
    loaded = ctypes.CDLL(None)
    try:
        for name in ("fl_gpu_torch_pool", "fl_gpu_cupy_pool"):
            getattr(loaded, name).argtypes = [ctypes.c_int]
            getattr(loaded, name).restype = ctypes.c_void_p
        loaded.fl_gpu_error.restype = ctypes.c_char_p
        loaded.fl_gpu_torch_use.argtypes = [ctypes.c_int]
        loaded.fl_gpu_pool_collect.argtypes = [ctypes.c_void_p]
        loaded.fl_gpu_pool_reset_peaks.argtypes = [ctypes.c_void_p]
        loaded.fl_gpu_pool_stats.argtypes = [ctypes.c_void_p, ctypes.POINTER(_PoolStats)]
        loaded.fl_gpu_pool_trim.argtypes = [ctypes.c_void_p, ctypes.c_size_t,
                                            ctypes.POINTER(ctypes.c_size_t)]
        loaded.fl_gpu_pool_stream_retire.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        loaded.fl_gpu_device_stats.argtypes = [ctypes.c_int, ctypes.POINTER(_DeviceStats)]
        _declare_mirror(loaded)
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

    def stats(self) -> Dict[str, int]:
        raw = _PoolStats(ctypes.sizeof(_PoolStats))
        check(library().fl_gpu_pool_stats(self.handle, ctypes.byref(raw)))
        return dict(zip(POOL_FIELDS[1:], raw[1:]))

    def reset_peaks(self) -> None:
        """The peaks of `stats` begin anew from what there is now."""
        check(library().fl_gpu_pool_reset_peaks(self.handle))

    def trim(self, keep: int = 0) -> int:
        """Gives whole chunks that are free back to the driver; returns how many bytes."""
        released = ctypes.c_size_t()
        check(library().fl_gpu_pool_trim(self.handle, keep, ctypes.byref(released)))
        return released.value

    def collect(self) -> None:
        """Reclaims the freed blocks that wait (FLAGS_eager_delete_tensor_gb)."""
        check(library().fl_gpu_pool_collect(self.handle))

    def retire(self, stream: int) -> None:
        """Before a stream is destroyed that lasts, or that record_stream named: its handle
        (`torch.cuda.Stream.cuda_stream`, `cupy.cuda.Stream.ptr`)."""
        check(library().fl_gpu_pool_stream_retire(self.handle, stream))


class Mirror:
    """`size` bytes of pinned memory in huge pages at `address`, and as many on the device, `delta`
    bytes further on (0: the driver does not register memory, and nothing can be copied). One thread
    at a time. It ends with its last reference, when the device has done what it was given: the
    driver's frees wait for that, and end no graph's capture as cuCtxSynchronize would."""

    def __init__(self, device: int, size: int) -> None:
        handle, block = ctypes.c_void_p(), SlotOfMirror(size=size, align=4096, input=True)
        gpu, options = ctypes.c_void_p(), MirrorOptions()
        check(library().fl_gpu_open(device, ctypes.byref(gpu)))
        library().fl_gpu_mirror_defaults(ctypes.byref(options))
        options.slot, options.count, options.inputs = ctypes.pointer(block), 1, 1
        try:
            check(library().fl_gpu_mirror_create(gpu, ctypes.byref(options), ctypes.byref(handle)))
        except Error:
            library().fl_gpu_close(gpu)
            raise
        place = library().fl_gpu_mirror_map(handle).contents
        self.size, self.address, self.delta = size, place.host, place.delta
        self._handle = handle
        # At the program's end memory is left to the kernel: kernels may still use it.
        weakref.finalize(self, _end_mirror, handle, gpu).atexit = False

    def begin(self) -> None:
        """Waits until what was copied from it last has been: it may be written."""
        check(library().fl_gpu_mirror_begin(self._handle, ctypes.byref(ctypes.c_void_p())))

    def push(self, offset: int, size: int, stream: int) -> None:
        """Copies these bytes to the device, in order on the stream."""
        check(library().fl_gpu_mirror_push_range(self._handle, self.address + offset, size, stream))

    def read(self, file: int, at: int, offset: int, size: int, stream: int) -> None:
        """Reads the descriptor's bytes from `at` on to `offset`, and on to the device."""
        check(library().fl_gpu_mirror_read(self._handle, file, at, self.address + offset, size,
                                           stream))


def _end_mirror(mirror: ctypes.c_void_p, gpu: ctypes.c_void_p) -> None:
    if library().fl_gpu_mirror_destroy(mirror) == 0:  # else the library still has it: a fork's child, say
        library().fl_gpu_close(gpu)


def device_stats(device: int = 0) -> Dict[str, int]:
    """What pools and mirrors of one device have together, as `struct fl_gpu_device_stats`."""
    raw = _DeviceStats(ctypes.sizeof(_DeviceStats))
    check(library().fl_gpu_device_stats(device, ctypes.byref(raw)))
    return dict(zip(DEVICE_FIELDS[1:], raw[1:]))
