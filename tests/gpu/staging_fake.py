"""PyTorch's streams, events and captures as the fake driver's, and what the fake driver can be told and asked."""
import contextlib
import ctypes
import os
import re
import threading

import torch

from faultless import staging

driver = ctypes.CDLL(os.environ["FAULTLESS_GPU_DRIVER"])


def fake_table():
    """fake_cuda.h's functions by name: the table has them in its order."""
    with open(os.path.join(os.path.dirname(__file__), "fake_cuda.h"), encoding="utf-8") as f:
        text = f.read()
    names = re.findall(r"\(\*(\w+)\)\(", re.sub(r"/\*.*?\*/", "", text[text.index("struct fake_cuda {"):], flags=re.S))
    names = [n for n in names if n != "fn"]
    table = (ctypes.c_void_p * len(names)).in_dll(driver, "fake_cuda")
    size, u64, pointer, number = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint
    kinds = {"kernel": (ctypes.c_int, pointer, u64, size, u64, size, ctypes.c_ubyte), "races": (number,),
             "host_access": (None, pointer, size, ctypes.c_bool), "holds": (ctypes.c_bool, u64, size, ctypes.c_ubyte),
             "violations": (number,), "capture": (None, pointer, ctypes.c_bool), "report": (ctypes.c_char_p,), "calls": (u64, ctypes.c_char_p),
             "copies": (u64,), "set": (None, ctypes.c_int, u64), "schedule": (None, ctypes.c_int, u64), "pageable_copies": (u64,)}
    return {n: ctypes.CFUNCTYPE(*kinds[n])(table[names.index(n)]) for n in kinds}


class Stream:
    """As torch.cuda.Stream, of the driver's."""

    def __init__(self, device=None):
        made = ctypes.c_void_p()
        assert driver.cuStreamCreate(ctypes.byref(made), 1) == 0
        self.cuda_stream = made.value

    def wait_event(self, event):
        waits.append((self.cuda_stream, event))
        assert driver.cuStreamWaitEvent(ctypes.c_void_p(self.cuda_stream), event.handle, 0) == 0


class Event:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        assert driver.cuEventCreate(ctypes.byref(self.handle), 2) == 0

    def record(self, stream):
        assert driver.cuEventRecord(self.handle, ctypes.c_void_p(stream.cuda_stream)) == 0


waits = []
current = threading.local()


def enter():
    """This thread's context and current stream."""
    context = ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    current.stream = Stream()


FAKE = fake_table()


def device_bytes(twin, device):
    """Over the device's memory itself, which must not be touched, of the twin's life."""
    buffer = (ctypes.c_ubyte * twin.mirror.size).from_address(twin.address)
    buffer.twin = twin
    return torch.frombuffer(buffer, dtype=torch.uint8)


def host(slot, at, size, dtype, inner=staging._Slot.host):
    """What the host is given it writes to; what was read into it, not."""
    if any(first <= at < last for first, last in slot._ranges):
        FAKE["host_access"](slot._mirror.address + at, size, True)
    return inner(slot, at, size, dtype)


def stand_in():
    driver.cuInit(0)
    enter()
    torch.cuda.Stream, torch.cuda.Event = Stream, Event
    torch.cuda.current_stream = lambda device=None: current.stream
    torch.cuda.current_device = lambda: 0
    torch.cuda.is_current_stream_capturing, torch.cuda.stream = is_capturing, on
    torch.cuda.synchronize = lambda device=None: check(driver.cuCtxSynchronize())
    staging._device_bytes = device_bytes
    staging._Slot.host = host


def check(code):
    if code != 0:
        raise RuntimeError(f"the driver says {code}")


@contextlib.contextmanager
def on(stream):
    """As torch.cuda.stream."""
    was, current.stream = getattr(current, "stream", None), stream
    try:
        yield
    finally:
        current.stream = was


def is_capturing():
    status = ctypes.c_int()
    check(driver.cuStreamIsCapturing(ctypes.c_void_p(current.stream.cuda_stream), ctypes.byref(status)))
    return status.value != 0
