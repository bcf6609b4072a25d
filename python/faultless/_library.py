"""The library that this process runs under, if it does: looked up among what is loaded, never loaded."""
import ctypes
import threading
import warnings
from typing import Dict, Optional

# struct fl_stats of <faultless/faultless.h>, in its order.
FIELDS = (
    "size", "active", "requests", "cache_hits", "stalls", "lazy", "refused", "frees", "live_extents",
    "in_use_bytes", "in_use_peak_bytes", "populated_bytes", "populated_peak_bytes", "populate_bytes",
    "populate_errors", "purge_bytes", "window_bytes", "move_bytes", "stock_bytes",
    "repair_bytes", "releases", "compactions", "rung", "plan_hits", "plan_misses", "plan_unplaced",
    "plan_missed_bytes", "plan_steps", "plan_layouts", "plan_drops", "plan_bytes", "cached_bytes",
    "plan_free_bytes", "free_held_bytes", "plan_recorded", "served_bytes", "lazy_bytes",
    "region_locks", "thin_bytes",
)

_Stats = ctypes.c_uint64 * len(FIELDS)
_lock = threading.Lock()
_warned = False


def _find() -> Optional[ctypes.CDLL]:
    loaded = ctypes.CDLL(None)
    try:
        for name in ("fl_step_begin", "fl_step_end"):
            getattr(loaded, name).argtypes = [ctypes.c_void_p]
        loaded.fl_step_new.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
        loaded.fl_stats_read.argtypes = [ctypes.POINTER(_Stats)]
        loaded.fl_version.restype = ctypes.c_char_p
        loaded.fl_release.argtypes = [ctypes.c_size_t]
        loaded.fl_release.restype = ctypes.c_int64
        loaded.fl_option_set.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    except AttributeError:
        return None
    return loaded


_loaded = _find()


def library() -> Optional[ctypes.CDLL]:
    """The loaded library; None, after one warning in the life of the process, when there is none."""
    global _warned
    if _loaded is None:
        with _lock:
            first, _warned = not _warned, True
        if first:
            warnings.warn("faultless is not preloaded: nothing is done; start the program with "
                          "`python -m faultless` or `faultless python`", RuntimeWarning, stacklevel=3)
    return _loaded


def is_loaded() -> bool:
    return _loaded is not None


def read_stats() -> Optional[Dict[str, int]]:
    """The counters by name; None when they cannot be read."""
    if _loaded is None:
        return None
    raw = _Stats(ctypes.sizeof(_Stats))
    if _loaded.fl_stats_read(ctypes.byref(raw)) != 0:
        return None
    return dict(zip(FIELDS[1:], raw[1:]))
