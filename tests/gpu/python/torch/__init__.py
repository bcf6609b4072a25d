"""A stand-in for PyTorch with CUDA: what faultless.torch touches of it, over ctypes. The environment says what it lacks
(STAND_IN: words); calls are the library's, as PyTorch makes them."""
import ctypes
import os
import types

_lacks = os.environ.get("STAND_IN", "").split()
__version__ = "2.15.0"
version = types.SimpleNamespace(cuda=None if "no-cuda" in _lacks else "13.2")
settings = []
changed = []


class _Allocator:
    def __init__(self, alloc, free):
        self.alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(alloc)
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(free)
        self.hooks = {}


def _setter(name):
    def set_it(self, address):
        assert isinstance(address, int) and address != 0
        self.hooks[name] = address
    return set_it


_names = ["set_init_fn", "set_reset_fn", "set_memory_fraction_fn", "set_base_alloc_fn", "set_record_stream_fn"]
if "old" not in _lacks:
    _names += ["set_begin_allocate_to_pool", "set_end_allocate_to_pool_fn", "set_release_pool"]
for _name in _names:
    setattr(_Allocator, _name, _setter(_name))


class CUDAPluggableAllocator:
    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        self._allocator = _Allocator(*(ctypes.cast(getattr(library, n), ctypes.c_void_p).value for n in (alloc, free)))

    def allocator(self):
        return self._allocator


def _set(text):
    if "no-setting" in _lacks:
        raise RuntimeError("Unrecognized key")
    settings.append(text)


def _change(allocator):
    if "taken" in _lacks:
        raise RuntimeError("Can't swap an already initialized allocator")
    changed.append(allocator)


memory = types.SimpleNamespace(change_current_allocator=_change)
if "no-pluggable" not in _lacks:
    memory.CUDAPluggableAllocator = CUDAPluggableAllocator
cuda = types.SimpleNamespace(memory=memory, is_available=lambda: "no-device" not in _lacks,
                             is_initialized=lambda: "initialized" in _lacks)
_C = types.SimpleNamespace(_accelerator_setAllocatorSettings=_set)
