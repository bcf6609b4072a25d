"""A training loop's batches, brought to the device by one copy each.

    stager = faultless.torch.Stager()
    loader = DataLoader(data, batch_size=256, collate_fn=stager.collate)
    for images, labels in stager(loader):       # on the device
        train(images, labels)

A batch is packed into a slot: pinned memory in huge pages, and as much on the device at the same
offsets. While the device computes with one slot the next batch is copied into another. A slot is
used again when no tensor of its last batch is held any more, on the host or on the device; the copy
waits on the device for the work that was queued until then. So a batch may be kept: later ones, that
find no slot, go the plain way, tensor by tensor. Where there is no device, or the library is not
preloaded, all batches do.

As with PyTorch's own memory, a stream other than the current one that still works with a batch when
its last tensor goes has to be waited for by the current one before that."""
import collections.abc
import ctypes
import fcntl
import mmap
import os
import warnings
import weakref
from typing import Any, Callable, Iterable, Iterator, List, Optional, Set, Tuple, Union

import torch

from . import gpu

_ALIGN = 512  # bytes: what PyTorch's own tensors begin at
_ALIGN_READ = 4096  # what files open with O_DIRECT want
_PAGE = 2 << 20  # slots are whole huge pages


def _up(size: int, align: int) -> int:
    return -(-size // align) * align


def _walk(batch: Any, of_tensor: Callable[[Any], Any], of_other: Callable[[Any], Any]) -> Any:
    """The batch with each tensor, and each other object that can be moved, replaced."""
    def each(part: Any) -> Any:
        return _walk(part, of_tensor, of_other)

    if isinstance(batch, torch.Tensor):
        return of_tensor(batch)
    if isinstance(batch, (str, bytes, bytearray, memoryview)):
        return batch
    if hasattr(batch, "to"):
        return of_other(batch)
    if isinstance(batch, collections.abc.Mapping):
        parts: Any = {key: each(batch[key]) for key in batch}
    elif isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(each, batch))
    elif isinstance(batch, collections.abc.Sequence):
        parts = [each(part) for part in batch]
    else:
        return batch
    try:
        return type(batch)(parts)  # type: ignore[call-arg]
    except TypeError:  # a type that is not made of its parts alone
        return parts


def _strides(t: Any) -> Tuple[int, ...]:
    """As PyTorch would lay out a copy."""
    return tuple(t.stride() if t.is_contiguous() else torch.empty_like(t, device="meta").stride())


def _extent(t: Any, strides: Tuple[int, ...]) -> int:
    """Bytes from the first element to the end of the last."""
    return (1 + sum((n - 1) * s for n, s in zip(t.shape, strides))) * int(t.element_size())


def _is_plain(t: Any) -> bool:
    return (type(t) is torch.Tensor and t.device.type == "cpu" and t.layout == torch.strided
            and not t.is_nested and t.numel() != 0 and not (t.requires_grad or t.is_quantized or t.is_conj() or t.is_neg()))


def _layout(shape: Any, dtype: Any) -> Any:
    """A tensor of that shape without memory."""
    return torch.empty(shape, dtype=dtype, device="meta")


def _read_direct(fd: int, to: memoryview, offset: int) -> int:
    """Bytes of a file that is open with O_DIRECT, by way of a buffer in whole blocks."""
    skip = offset % _ALIGN_READ
    with mmap.mmap(-1, _up(min(skip + len(to), _PAGE), _ALIGN_READ)) as buffer:
        size = max(min(os.preadv(fd, [buffer], offset - skip) - skip, len(to)), 0)
        to[:size] = buffer[skip:skip + size]
    return size


def _read_plainly(fd: int, t: Any, offset: int) -> Any:
    size, done = t.numel() * t.element_size(), 0
    view = memoryview((ctypes.c_ubyte * size).from_address(t.data_ptr())).cast("B") if size != 0 else memoryview(b"")
    direct = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT
    while done < size:
        rest, at = view[done:], offset + done
        more = _read_direct(fd, rest, at) if direct else os.preadv(fd, [rest], at)
        if more == 0:
            raise gpu.Error("the file ends before")
        done += more
    return t


def _is_captured(stream: Any) -> bool:
    """Into a graph. What cannot be asked counts as captured."""
    try:
        with torch.cuda.stream(stream):
            return bool(torch.cuda.is_current_stream_capturing())
    except RuntimeError:
        return True


class _Held:
    """Of the life of a host tensor's memory."""

    def __init__(self, mirror: gpu.Mirror) -> None:
        self.mirror = mirror


class _Twin:
    """The device's side of a slot, as long as one batch has it."""

    def __init__(self, mirror: gpu.Mirror) -> None:
        self.mirror = mirror
        self.address = (mirror.address + mirror.delta) % (1 << 64)  # delta may be one down
        self.__cuda_array_interface__ = {"shape": (mirror.size,), "typestr": "|u1", "version": 3,
                                         "data": (self.address, False)}


def _device_bytes(twin: _Twin, device: Any) -> Any:
    """A tensor over it, whose memory holds it."""
    return torch.as_tensor(twin, device=device)


class _Slot:
    """The memory of one batch at a time. It knows whether a tensor holds it: each of the host's has
    a _Held, those of the device have one _Twin."""

    def __init__(self, device: Any, size: int) -> None:
        self._device = device
        self._mirror = gpu.Mirror(device.index, size)
        if self._mirror.delta == 0:
            raise gpu.Error(f"the driver does not register host memory ({gpu.library().fl_gpu_error().decode()})")
        self.size = size
        self._held: Any = weakref.WeakSet()
        self._twin: Any = None  # weak, for its callback
        self._is_out = False    # tensors of the device are held, or not known not to be
        self._done, self._copied = torch.cuda.Event(), torch.cuda.Event()
        self._user: Any = None  # the stream that `done` is recorded on; None: nothing to wait for
        self._is_late = False   # it is not recorded yet
        self.is_open = False    # between begin and send
        self.used = 0
        self._ranges: List[Tuple[int, int]] = []  # bytes from, to: for send to copy

    def is_idle(self) -> bool:
        return not self._is_out and len(self._held) == 0

    def may_begin(self) -> bool:
        return self.is_idle() and not (self._is_unsent() and _is_captured(torch.cuda.current_stream(self._device)))

    def _is_unsent(self) -> bool:
        """The program may have copies of its own under way, on whichever stream."""
        return self.is_open and self.used != 0

    def begin(self) -> None:
        if self._is_unsent():
            torch.cuda.synchronize(self._device)
        self._mirror.begin()
        self.is_open, self.used, self._ranges = True, 0, []

    def spans(self, address: int) -> bool:
        return 0 <= address - self._mirror.address < self.size

    def has(self, t: Any) -> bool:
        at = t.data_ptr() - self._mirror.address
        return self.is_open and 0 <= at and at + _extent(t, t.stride()) <= self.used

    def in_place(self, tensors: List[Any]) -> Set[int]:
        """Which of them go from where they lie: as PyTorch would lay them out, none over another."""
        found: Set[int] = set()
        end = 0
        for at, i in sorted((t.data_ptr(), i) for i, t in enumerate(tensors) if self.has(t)):
            strides = _strides(tensors[i])
            if at >= end and strides == tensors[i].stride():
                found.add(i)
                end = at + _extent(tensors[i], strides)
        return found

    def has_room(self, size: int) -> bool:
        return _up(self.used, _ALIGN) + size <= self.size

    def take(self, size: int, align: int, copy: bool = True) -> Optional[int]:
        """The next bytes' offset; None: there is no room. `copy`: send copies them."""
        at = _up(self.used, align)
        if not self.is_open or at + size > self.size:
            return None
        if copy and self._ranges and self._ranges[-1][1] == self.used:
            self._ranges[-1] = (self._ranges[-1][0], at + size)
        elif copy:
            self._ranges.append((at, at + size))
        self.used = at + size
        return at

    def host(self, at: int, size: int, dtype: Any) -> Any:
        buffer: Any = (ctypes.c_ubyte * size).from_address(self._mirror.address + at)
        buffer.held = _Held(self._mirror)
        self._held.add(buffer.held)
        return torch.frombuffer(buffer, dtype=torch.uint8).view(dtype)

    def _order(self, stream: Any) -> None:
        """The stream's next copies come after what was done with the batch before."""
        if self._user is not None and self._user != stream:
            if self._is_late and _is_captured(self._user):
                raise gpu.Error("the stream that had the slot's last batch is captured into a graph")
            if self._is_late:
                self._done.record(self._user)
            stream.wait_event(self._done)
        self._user, self._is_late = None, False

    def read(self, fd: int, offset: int, at: int, size: int, stream: Any) -> None:
        self._order(stream)
        self._mirror.read(fd, offset, at, size, stream.cuda_stream)

    def send(self, tensors: List[Any], stream: Any) -> List[Any]:
        """All of it goes to the device; these tensors of it, there."""
        self._order(stream)
        for first, last in self._ranges:
            self._mirror.push(first, last - first, stream.cuda_stream)
        user = torch.cuda.current_stream(self._device)
        if user != stream:
            self._copied.record(stream)
            user.wait_event(self._copied)
        whole = self._give(user)
        return [self._view(whole, t) for t in tensors]

    def _give(self, user: Any) -> Any:
        twin = _Twin(self._mirror)

        def retire(_: Any) -> None:  # in whichever thread the last tensor goes
            self._is_late = _is_captured(user)  # the graph would have the event
            try:
                if not self._is_late:
                    self._done.record(user)
            except RuntimeError:
                self._is_late = True
            self._user = user
            self._is_out = False

        self._twin = weakref.ref(twin, retire)
        self._is_out, self.is_open = True, False
        return _device_bytes(twin, self._device)

    def _view(self, whole: Any, t: Any) -> Any:
        at, strides = t.data_ptr() - self._mirror.address, t.stride()
        part = whole[at:at + _extent(t, strides)].view(t.dtype).as_strided(t.shape, strides)
        return part.data  # to autograd it is no view: writing to one tensor leaves others as they are


def _collate(samples: List[Any], empty: Optional[Callable[..., Any]]) -> Any:
    """PyTorch's, into tensors that `empty` makes; tensors of several shapes stay a list."""
    from torch.utils.data._utils import collate

    def of_tensors(batch: Any, *, collate_fn_map: Any = None) -> Any:
        shape, dtype = batch[0].shape, batch[0].dtype
        if any(t.shape != shape for t in batch):
            return list(batch)
        if empty is None or any(t.dtype != dtype or not _is_plain(t) for t in batch):
            return collate.collate_tensor_fn(batch, collate_fn_map=collate_fn_map)
        return torch.stack(batch, 0, out=empty((len(batch), *shape), dtype))

    return collate.collate(samples, collate_fn_map={**collate.default_collate_fn_map,
                                                    torch.Tensor: of_tensors})


_stagers: Any = weakref.WeakSet()


def _is_in_slot(t: Any) -> bool:
    """Of any Stager: its mirror would know nothing of a copy that has not ended."""
    try:
        at = t.data_ptr()
    except RuntimeError:  # what has no one address may have part of it there
        return True
    return any(s is not None and s.spans(at) for stager in list(_stagers) for s in stager._slots)


def _go_plainly() -> None:
    """In a fork's child: neither the device nor the slots' memory is there."""
    for stager in list(_stagers):
        stager.stream = stager._open = None


os.register_at_fork(after_in_child=_go_plainly)


_SENT = "a Stager that was sent to another process has its `collate` alone: make one in this process"


class _NotHere(gpu.Error, AttributeError):
    pass


class _InWorker:
    """What a Stager is where it was sent, such as a DataLoader's worker that was spawned: its `collate`."""

    def collate(self, samples: List[Any]) -> Any:
        return _collate(samples, None)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("__") else _NotHere(_SENT)

    def __call__(self, loader: Iterable[Any]) -> Iterator[Any]:
        raise _NotHere(_SENT)


class Stager:
    """Brings batches to the device.

    device   "cuda" where there is one, else "cpu"
    slots    how many batches have a place: one to compute with, one to copy, and one for each that
             the program keeps or fetches ahead
    size     bytes of a slot; 0: as the batches turn out to be. Slots that are too small are replaced
    stream   torch.cuda.Stream that copies; None: one of the Stager's own"""

    def __init__(self, device: Any = None, slots: int = 2, size: int = 0, stream: Any = None) -> None:
        if slots < 2:
            raise ValueError("a Stager has at least two slots")
        self.device = torch.device(device if device is not None else "cuda" if torch.cuda.is_available() else "cpu")
        self.stream: Any = None  # None: the plain way
        self._slots: List[Optional[_Slot]] = [None] * slots
        self._turn = 0
        self._size = _up(size, _PAGE)
        self._open: Optional[_Slot] = None
        self._warned = self._warned_of_copies = False
        if self.device.type == "cuda" and gpu._loaded is None:
            self._warn("faultless is not preloaded (start the program with `faultless python`)")
        elif self.device.type == "cuda":
            if self.device.index is None:
                self.device = torch.device("cuda", torch.cuda.current_device())
            self.stream = stream or torch.cuda.Stream(self.device)
            _stagers.add(self)

    def __reduce__(self) -> Any:
        return _InWorker, ()

    def __copy__(self) -> "Stager":
        return self

    def __deepcopy__(self, _: Any) -> "Stager":  # of a model that has it
        return self

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"faultless.torch.Stager: {why}: batches go the plain way", RuntimeWarning,
                          stacklevel=4)

    def _warn_of_copies(self) -> None:
        """The slot that is open has a batch which is not the one that is pushed, so not this one's memory."""
        if self._open is not None and not self._warned_of_copies:
            self._warned_of_copies = True
            warnings.warn("faultless.torch.Stager: a batch is pushed that is not what `collate` made (leave out "
                          "pin_memory=True, and push before other work on it): it is copied once more, and the slot "
                          "waits for the device", RuntimeWarning, stacklevel=4)

    def __call__(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches, on the device."""
        for batch in loader:
            staged = [self.push(batch)]
            del batch  # what is held is not used again
            yield staged.pop()

    def collate(self, samples: List[Any]) -> Any:
        """DataLoader's `collate_fn`: as PyTorch's own, but that tensors of several shapes become a
        list. Without workers it writes into the slot; what workers make is copied there by push."""
        if self.stream is None or torch.utils.data.get_worker_info() is not None:
            return _collate(samples, None)
        self.begin()
        return _collate(samples, self.empty)

    def begin(self) -> None:
        """A batch begins, which `empty` and `read` put into a slot: waits for the last copy from
        there, and for nothing else."""
        self._open = None
        for _ in self._slots if self.stream is not None else ():
            self._turn = (self._turn + 1) % len(self._slots)
            slot = self._slots[self._turn]
            if slot is None:
                slot = self._make(self._size)
            if slot is None:
                return  # push makes it, when it knows how large
            if slot.may_begin():
                slot.begin()
                self._open = slot
                return

    def empty(self, shape: Union[int, Tuple[int, ...]], dtype: Any = torch.float32) -> Any:
        """A tensor of the host to write to: in the slot if there is room."""
        t = _layout(shape, dtype)
        size, slot = t.numel() * t.element_size(), self._open
        at = slot.take(size, _ALIGN) if slot is not None and size != 0 else None
        if slot is None or at is None:
            return torch.empty(shape, dtype=dtype, device="cpu")
        return slot.host(at, size, dtype).view(t.shape)

    def read(self, file: Any, shape: Union[int, Tuple[int, ...]], dtype: Any = torch.float32,
             offset: int = 0) -> Any:
        """A tensor as of `empty`, with what the file has from `offset` on: read into the slot with
        no copy between, and sent on as it comes. It is not to be changed."""
        fd, t = file if isinstance(file, int) else file.fileno(), _layout(shape, dtype)
        size, slot = t.numel() * t.element_size(), self._open
        at = slot.take(size, _ALIGN_READ, copy=False) if slot is not None and size != 0 else None
        if slot is None or at is None:
            return _read_plainly(fd, torch.empty(shape, dtype=dtype, device="cpu"), offset)
        slot.read(fd, offset, at, size, self.stream)
        return slot.host(at, size, dtype).view(t.shape)

    def push(self, batch: Any) -> Any:
        """The batch on the device: tensors, and what has a method `to`, in lists, tuples and
        dictionaries. Tensors that are not in the slot are copied into it; then all of it goes by one
        copy, and the current stream waits for that. A host tensor is not to be written after."""
        if self.device.type == "cpu":
            return batch
        if self.stream is not None and _is_captured(torch.cuda.current_stream(self.device)):
            raise gpu.Error("the current stream is captured into a graph: push before, and copy the batch in the graph")
        tensors: List[Any] = []
        _walk(batch, lambda t: tensors.append(t) if _is_plain(t) else None, lambda other: None)
        slot = self._home(tensors) if self.stream is not None and tensors else None
        if slot is None:
            return self._move(batch, lambda t: t.to(self.device, non_blocking=not _is_in_slot(t)))
        stay = slot.in_place(tensors)
        packed = [t if i in stay else _pack(slot, t) for i, t in enumerate(tensors)]
        twins = iter(slot.send(packed, self.stream))
        return self._move(batch, lambda t: next(twins) if _is_plain(t) else t.to(self.device))

    def _move(self, batch: Any, of_tensor: Callable[[Any], Any]) -> Any:
        return _walk(batch, of_tensor, lambda other: other.to(self.device))

    def _make(self, size: int) -> Optional[_Slot]:
        """The slot of this turn; None: of no size, or it cannot be made."""
        try:
            self._slots[self._turn] = _Slot(self.device, size) if size != 0 else None
        except gpu.Error as error:
            self._slots[self._turn] = self.stream = None
            self._warn(str(error))
        return self._slots[self._turn]

    def _home(self, tensors: List[Any]) -> Optional[_Slot]:
        """The slot that the batch is in, or goes into: there is room. None: the plain way."""
        slot = next((s for s in self._slots if s is not None and any(map(s.has, tensors))), None)
        if slot is None and self._open is not None and self._open.used == 0:
            slot = self._open
        elif slot is None:
            self._warn_of_copies()
            self.begin()
            slot = self._open
            if self.stream is None:
                return None  # there was no memory for a slot
        if slot is not None:
            self._turn = self._slots.index(slot)
        self._open = None if self._open is slot else self._open
        if slot is None and None not in self._slots:
            self._warn(f"the program holds {len(self._slots)} batches, and there are no more slots")
            return None
        stay, used = (slot.in_place(tensors), slot.used) if slot is not None else (set(), 0)
        more = _need(t for i, t in enumerate(tensors) if i not in stay)
        if slot is not None and slot.has_room(more):
            return slot
        self._size = max(self._size, _up(max(_need(tensors), used + more) * 5 // 4, _PAGE))
        slot = self._make(self._size)
        if slot is not None:
            slot.begin()
        return slot


def _need(tensors: Iterable[Any]) -> int:
    return sum(_up(_extent(t, _strides(t)), _ALIGN) for t in tensors)


def _pack(slot: _Slot, t: Any) -> Any:
    """A copy of it in the slot, which has room."""
    strides = _strides(t)
    size = _extent(t, strides)
    at = slot.take(size, _ALIGN)
    assert at is not None
    return slot.host(at, size, t.dtype).as_strided(t.shape, strides).copy_(t)
