"""A stand-in for CuPy: CFunctionAllocator as cupy/cuda/memory.pyx has it, over ctypes."""
import ctypes
import types

chosen = []


class _Memory:
    def __init__(self, param, malloc, free, size):
        self._param, self._free, self.ptr = param, free, 0
        if size > 0:
            self.ptr = malloc(param, size, 0) or 0  # not looked at

    def __del__(self):
        if self.ptr:
            self._free(self._param, self.ptr, 0)


class CFunctionAllocator:
    def __init__(self, param, malloc, free, owner):
        self._param, self._owner = param, owner
        self._malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(malloc)
        self._free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(free)

    def malloc(self, size):
        return _Memory(self._param, self._malloc, self._free, size)


class OutOfMemoryError(MemoryError):
    def __init__(self, size, total, limit=0):
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes).")


memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
cuda = types.SimpleNamespace(CFunctionAllocator=CFunctionAllocator, set_allocator=chosen.append, memory=memory)


def is_available():
    return True
