"""faultless.torch.Stager, under the library, with a PyTorch that needs no device.

    loader    on the CPU: its batches are those of the plain loop, with workers and without
    page      the programs of docs/gpu.md and examples/pytorch-staging, on the CPU
    fake      on the fake driver: its copies, its waits, its races. PyTorch's streams are the driver's
              here, and its tensors of the device are marks of where they would be
    threads   two threads with a Stager each

Asserts; ends with 0."""
import collections
import contextlib
import copy
import gc
import json
import os
import pickle
import re
import runpy
import sys
import tempfile
import threading
import warnings

import numpy
import torch
from torch.utils.data import DataLoader

import faultless.gpu
import faultless.torch
from faultless import staging
from raising import raises
from staging_fake import FAKE, Event, Stream, current, enter, is_capturing, on, stand_in, waits

Pair = collections.namedtuple("Pair", "left right")


def compute(fake, tensors, values):
    """A kernel that reads them; they hold what they should when it runs."""
    for t, value in zip(tensors, values):
        size = t.numel() * t.element_size()
        assert fake["kernel"](current.stream.cuda_stream, t.data_ptr(), size, t.data_ptr(), size, value) == 0


def arrived(t, value):
    return FAKE["holds"](t.data_ptr(), t.numel() * t.element_size(), value)


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 37

    def __getitem__(self, i):
        return {"x": torch.full((3, 5), float(i)), "y": i, "name": str(i), "pair": Pair(torch.tensor(i), 0.5),
                "array": torch.arange(i, i + 4).numpy()}


def loader():
    stager = faultless.torch.Stager("cpu")
    for workers, how in ((0, None), (2, "fork"), (1, "spawn")):
        plain = DataLoader(Samples(), batch_size=8)
        ours = DataLoader(Samples(), batch_size=8, num_workers=workers, collate_fn=stager.collate,
                          multiprocessing_context=how)
        got = list(stager(ours))
        assert len(got) == 5 and all(map(same, got, list(plain))), (workers, how)
    stager.begin()
    x = stager.empty((2, 3)).fill_(1)
    assert x.shape == (2, 3) and same(stager.push([x]), [x])
    with tempfile.TemporaryFile() as f:
        f.write(bytes(range(100)))
        f.flush()
        assert stager.read(f, (4, 5), torch.uint8, 10).tolist() == torch.arange(10, 30).view(4, 5).tolist()
        with raises(faultless.gpu.Error, "ends before"):
            stager.read(f, 200, torch.uint8)
    assert copy.deepcopy([stager])[0] is stager and copy.copy(stager) is stager  # in this process it is the one
    elsewhere(stager)
    direct()
    ragged = stager.collate([(torch.ones(n), n) for n in (1, 2, 3)])
    assert [t.numel() for t in ragged[0]] == [1, 2, 3] and ragged[1].tolist() == [1, 2, 3]


def elsewhere(stager):
    """Sent to another process it collates; each other use says that it was sent."""
    sent = pickle.loads(pickle.dumps(stager))
    assert same(sent.collate([(torch.ones(2), 1)]), stager.collate([(torch.ones(2), 1)]))
    assert pickle.loads(pickle.dumps(sent)).collate([1]).tolist() == [1]
    uses = {"begin": (), "empty": (3,), "read": (0, 3), "push": ([],), "__call__": ([],)}
    for name, arguments in uses.items():
        with raises(faultless.gpu.Error, "make one in this process"):
            sent(*arguments) if name == "__call__" else getattr(sent, name)(*arguments)
    assert not hasattr(sent, "device")


def direct():
    """Plain memory is read into from a file that is open with O_DIRECT, and is the host's whatever
    PyTorch's default is."""
    stager, content = faultless.torch.Stager("cpu"), torch.arange(70001).to(torch.uint8)
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as f:
        f.write(content.numpy().tobytes())
        f.flush()
        file = os.open(f.name, os.O_RDONLY | os.O_DIRECT)
        for first, last in ((0, 4096), (77, 50078), (4097, 4098), (65536, 70001), (8192, 70001)):
            assert torch.equal(stager.read(file, last - first, torch.uint8, first), content[first:last])
        with raises(faultless.gpu.Error, "ends before"):
            stager.read(file, 70001, torch.uint8, 1)
        if hasattr(torch, "set_default_device"):
            torch.set_default_device("meta")
            there = stager.read(file, 10, torch.uint8), stager.empty(3), stager.read(f, 10, torch.uint8)
            torch.set_default_device("cpu")
            assert all(t.device.type == "cpu" for t in there) and torch.equal(there[0], content[:10])
        os.close(file)


def read_files(program):
    x, y = torch.arange(24, dtype=torch.float32).view(2, 3, 4), torch.arange(5)
    header = json.dumps({"other": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                         "images": {"dtype": "F32", "shape": [2, 3, 4], "data_offsets": [4, 100]}}).encode()
    names = {"stager": faultless.torch.Stager("cpu")}
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/batch.safetensors", "wb") as f:
            f.write(len(header).to_bytes(8, "little") + header + bytes(4) + x.numpy().tobytes())
        numpy.save(f"{folder}/labels.npy", y.numpy())
        was = os.getcwd()
        os.chdir(folder)
        exec(program, names)
        os.chdir(was)
    assert same(names["x"], x) and same(names["y"], y)


def page():
    """The page's first program and the one that reads files run as they stand; so do the examples."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    with open(f"{root}/docs/gpu.md", encoding="utf-8") as f:
        blocks = re.findall(r"^    import.*\n(?:(?:    .*)?\n)*", f.read(), re.M)
    block = blocks[0]
    read_files(re.sub("^    ", "", next(b for b in blocks if "safetensors" in b), flags=re.M))
    model = torch.nn.Linear(8, 3)
    names = {"data": torch.utils.data.TensorDataset(torch.randn(600, 8), torch.randint(0, 3, (600,))), "model": model,
             "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "criterion": torch.nn.functional.cross_entropy}
    exec(re.sub("^    ", "", block, flags=re.M).replace("num_workers=8", "num_workers=1"), names)
    assert names["loss"].isfinite() and len(names["x"]) == 600 % 256
    sys.argv[1:] = ["0"]
    runpy.run_path(f"{root}/examples/pytorch-staging/train.py")
    module = runpy.run_path(f"{root}/examples/pytorch-staging/lightning_module.py")["Staged"]()
    for _ in range(2):
        assert module.transfer_batch_to_device([1, "a"], torch.device("cpu"), 0) == [1, "a"]
    assert module.stager.device.type == "cpu"


def batches(stager, n, sizes=(1 << 20, 4096, 100)):
    """Batches as a loader without workers makes them: filled with their number."""
    for i in range(n):
        yield stager.collate([tuple(torch.full((size // 2,), i % 251, dtype=torch.uint8) for size in sizes)] * 2)


def steady(stager, n):
    """A training loop: each batch is read by a kernel of its own stream."""
    for i, batch in enumerate(stager(batches(stager, n))):
        if i % 7 == 0:
            assert all(arrived(t, i % 251) for t in batch)
        compute(FAKE, batch, [i % 251] * len(batch))


def fake():
    stand_in()
    FAKE["schedule"](2, 1)
    stager = faultless.torch.Stager("cuda:0")
    steady(stager, 4)  # makes both slots
    before, known = {n: FAKE["calls"](n) for n in (b"cuEventSynchronize", b"cuMemAlloc", b"cuMemHostRegister",
                                                   b"cuStreamSynchronize", b"cuCtxSynchronize")}, FAKE["copies"]()
    waits.clear()
    steady(stager, 100)
    assert FAKE["copies"]() - known == 100, FAKE["copies"]() - known  # one a batch
    assert len(waits) == 200  # the copy for the kernels before, the kernels for the copy; the device does both
    for name, calls in before.items():  # the host may wait for the copy of the batch before the last
        assert FAKE["calls"](name) - calls <= (100 if name == b"cuEventSynchronize" else 0), name
    on_one_stream()
    ahead()
    kept()
    grown(stager)
    others(stager)
    views()
    refused()
    pushed_twice()
    captured()
    dropped_in_capture()
    ended_in_capture()
    copied_between()
    unregistered()
    forked()
    from_a_file()
    many_reads()
    gc.collect()
    assert FAKE["races"]() == 0 and FAKE["violations"]() == 0, FAKE["report"]()
    assert FAKE["pageable_copies"]() == 0


def on_one_stream():
    """What is in order by its stream waits for nothing."""
    stager = faultless.torch.Stager("cuda:0", stream=current.stream)
    waits.clear()
    steady(stager, 20)
    assert waits == []


def ahead():
    """What a loader has made and is not pushed yet is not written to; what was dropped is."""
    stager = faultless.torch.Stager("cuda:0", size=4 << 20)
    made = list(batches(stager, 5))
    for i in range(5):
        assert all(arrived(t, i) for t in stager.push(made.pop(0)))
    for _ in batches(stager, 5):
        pass
    known = FAKE["copies"]()
    assert all(arrived(t, 0) for t in stager.push(next(batches(stager, 1)))) and FAKE["copies"]() == known + 1


def kept():
    """Batches that the program holds stay as they are; those that find no slot are said once."""
    stager = faultless.torch.Stager("cuda:0", slots=3, size=4 << 20)
    moved = []
    stager._move = (lambda inner: lambda batch, of: moved.append(inner(batch, of)) or moved[-1])(stager._move)
    plain_to = torch.Tensor.to
    torch.Tensor.to = lambda self, *_, **__: self  # there is no device
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        held = [(b[0].data_ptr(), b) for b in stager(batches(stager, 3))]
        more = [stager.push(b) for b in batches(stager, 2)]
    torch.Tensor.to = plain_to
    assert len(seen) == 1 and "holds 3 batches" in str(seen[0].message), [str(w.message) for w in seen]
    assert len(set(a for a, _ in held)) == 3 and all(int(b[0][0][0]) == i for i, b in enumerate(more))
    assert all(FAKE["holds"](a, 1 << 20, i) for i, (a, _) in enumerate(held))
    moved.clear()
    del held
    assert stager.begin() is None and stager._open is not None


def grown(stager):
    """A batch larger than the slot; and the host tensors of the slot before are still there."""
    first = stager.collate([torch.full((100,), 3, dtype=torch.uint8)])
    large = torch.full((9 << 20,), 5, dtype=torch.uint8)
    batch = stager.push({"first": first, "large": large, "none": None, "text": "as it is"})
    assert arrived(batch["first"], 3) and arrived(batch["large"], 5)
    assert batch["none"] is None and batch["text"] == "as it is" and first.sum() == 300


def others(stager):
    """Tensors of other layouts, of workers' memory, and what is no tensor."""
    channels = torch.full((2, 3, 4, 5), 7, dtype=torch.uint8).to(memory_format=torch.channels_last)
    shared = torch.full((33,), 8, dtype=torch.uint8).share_memory_()
    part = torch.full((10, 10), 9, dtype=torch.uint8)[:, 3:5]
    batch = stager.push(Pair([channels, part], (shared, torch.tensor(6, dtype=torch.uint8))))
    (c, p), (s, z) = batch
    assert type(batch) is Pair and c.stride() == channels.stride() and p.shape == (10, 2) and z.shape == ()
    assert arrived(c, 7) and arrived(p, 9) and arrived(s, 8) and arrived(z, 6)
    assert not c._is_view() and not s._is_view()  # to autograd they have nothing to do with each other
    if hasattr(torch, "nested"):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        plain_to, torch.Tensor.to = torch.Tensor.to, lambda self, *_, **__: self  # there is no device
        n, x = stager.push([nested, torch.full((7,), 4, dtype=torch.uint8)])
        torch.Tensor.to = plain_to
        assert n is nested and arrived(x, 4)


def views():
    """What lies in the slot comes out as PyTorch would copy it: dense, and each tensor apart."""
    stager = faultless.torch.Stager("cuda:0", size=4 << 20)
    stager.begin()
    x = stager.empty((10, 10), torch.uint8).fill_(3)
    given = [x, x, x.t(), x[:, ::2], x[:1].expand(4, 10), x[5:]]
    known = FAKE["copies"]()
    batch = stager.push(given)
    assert FAKE["copies"]() - known == 1 and all(arrived(t, 3) for t in batch)
    assert [t.stride() for t in batch] == [t.clone().stride() for t in given]
    ranges = sorted((t.data_ptr(), t.data_ptr() + t.numel()) for t in batch)
    assert all(a[1] <= b[0] for a, b in zip(ranges, ranges[1:])), ranges
    assert (batch[0].data_ptr() - stager._slots[1]._mirror.delta) % (1 << 64) == x.data_ptr()  # the first has not moved


def refused():
    """A slot whose last tensor goes when the driver refuses an event is used again, in order."""
    stager = faultless.torch.Stager("cuda:0", size=4 << 20)
    record, first = Event.record, stager.push([torch.full((100,), 1, dtype=torch.uint8)])
    compute(FAKE, first, [1])

    def refuse(self, stream):
        raise RuntimeError("refused")

    Event.record = refuse
    del first
    Event.record = record
    steady(stager, 6)
    assert all(slot.is_idle() for slot in stager._slots)


def pushed_twice():
    """What goes the plain way out of a slot has left it when push returns; other memory is not waited for."""
    stager = faultless.torch.Stager("cuda:0", size=4 << 20)
    made = []
    for i in range(2):
        made.append(stager.collate([torch.full((100,), i, dtype=torch.uint8)] * 2))
        stager.push(made[-1:])
    asked = []
    plain_to = torch.Tensor.to
    torch.Tensor.to = lambda self, *_, **how: asked.append(how["non_blocking"]) or self  # there is no device
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stager.push([made[0], torch.ones(3), made[1]])
    torch.Tensor.to = plain_to
    assert asked == [False, True, False], asked


def captured():
    """While the current stream is captured push says so, and neither the capture nor the batch is lost."""
    stager = faultless.torch.Stager("cuda:0", size=4 << 20)
    batch, known = next(batches(stager, 1)), FAKE["copies"]()
    FAKE["capture"](current.stream.cuda_stream, True)
    with raises(faultless.gpu.Error, "is captured into a graph: push before"):
        stager.push(batch)
    FAKE["capture"](current.stream.cuda_stream, False)
    assert all(arrived(t, 0) for t in stager.push(batch)) and FAKE["copies"]() == known + 1


def dropped_in_capture():
    """A batch's last tensor goes while its stream is captured: its slot is used again after that, in order;
    another stream's push before then says why it cannot be."""
    stager, mine = faultless.torch.Stager("cuda:0", size=4 << 20), current.stream
    first = stager.push([torch.full((100,), 1, dtype=torch.uint8)])
    compute(FAKE, first, [1])
    FAKE["capture"](mine.cuda_stream, True)
    del first
    with on(Stream()):
        for i in range(2):
            expected = raises(faultless.gpu.Error, "last batch is captured") if i else contextlib.nullcontext()
            with expected:
                del stager.push([torch.full((100,), 2, dtype=torch.uint8)])[:]
    assert is_capturing()
    FAKE["capture"](mine.cuda_stream, False)
    steady(stager, 6)


def ended_in_capture():
    """What ends or begins while a stream is captured leaves the capture as it is, and waits for kernels."""
    stager, known = faultless.torch.Stager("cuda:0", size=4 << 20), FAKE["calls"](b"cuMemFree")
    batch = stager.push([torch.full((100,), 1, dtype=torch.uint8)])
    compute(FAKE, batch, [1])
    del batch
    for unsent in batches(stager, 2):
        del unsent  # never pushed
    FAKE["capture"](current.stream.cuda_stream, True)
    synchronized = FAKE["calls"](b"cuCtxSynchronize")
    stager.begin()
    stager = None
    gc.collect()
    assert FAKE["calls"](b"cuCtxSynchronize") == synchronized and FAKE["calls"](b"cuMemFree") == known + 2
    assert is_capturing()
    FAKE["capture"](current.stream.cuda_stream, False)


def copied_between():
    """A batch that was copied after `collate` made it arrives, and a warning says once what that costs."""
    stager = faultless.torch.Stager("cuda:0", size=4 << 20)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for i, batch in enumerate(batches(stager, 6)):
            copies = [t.clone() for t in batch]
            del batch
            assert all(arrived(t, i) for t in stager.push(copies))
    assert ["not what `collate` made" in str(w.message) for w in seen] == [True], seen


def unregistered():
    """Where the driver registers no memory, the warning has its reason."""
    stager = faultless.torch.Stager("cuda:0", size=4 << 20)
    FAKE["set"](6, 4096)  # FAKE_CUDA_REGISTER_MAX
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        stager.begin()
    FAKE["set"](6, (1 << 64) - 1)
    assert ["(cuMemHostRegister" in str(w.message) for w in seen] == [True], [str(w.message) for w in seen]


def from_a_file():
    stager = faultless.torch.Stager("cuda:0", size=8 << 20)
    with tempfile.TemporaryFile() as f:
        f.write(bytes([4]) * (3 << 20) + bytes([5]) * 10)
        f.flush()
        for i in range(6):
            stager.begin()
            x = stager.read(f, (3, 1 << 20), torch.uint8)
            y = stager.read(f, 10, torch.uint8, 3 << 20)
            z = stager.empty(77, torch.uint8).fill_(6)
            known = FAKE["copies"]()
            batch = stager.push([x, y, z])
            assert FAKE["copies"]() - known == 1  # what was read is there already
            assert arrived(batch[0], 4) and arrived(batch[1], 5) and arrived(batch[2], 6)
            compute(FAKE, batch, (4, 5, 6))


def forked():
    """In a fork's child batches are made in plain memory; the parent's go on."""
    stager = faultless.torch.Stager("cuda:0", slots=4, size=4 << 20)
    held = stager.push(next(batches(stager, 1)))
    stager.begin()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # OpenMP's other threads are not there, as in DataLoader's workers
        x = stager.empty(5, torch.uint8).fill_(7)
        made = next(batches(stager, 1))
        os._exit(x.sum() != 35 or [t.numel() for t in made] != [1 << 20, 4096, 100])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all(arrived(t, 0) for t in held)
    steady(stager, 4)


def many_reads():
    """A slot becomes as large as reads want it, which begin at whole pages; then it stays."""
    stager, made = faultless.torch.Stager("cuda:0"), []
    stager._make = (lambda inner: lambda size: made.append(size) or inner(size))(stager._make)
    with tempfile.TemporaryFile() as f:
        f.write(bytes([4]) * 4096)
        f.flush()
        for i in range(12):
            stager.begin()
            before = len(made)
            batch = stager.push([stager.read(f, 100, torch.uint8, j) for j in range(1000)])
            assert all(arrived(t, 4) for t in (batch[0], batch[-1]))
    assert len(made) == before and made[-1] >= 4096 * 1000, made


def threads():
    """As many batches as said, by two threads."""
    count, failed = int(os.environ.get("FL_BATCHES", "4000")), []
    stand_in()
    FAKE["schedule"](2, 3)

    def loop():
        try:
            enter()
            steady(faultless.torch.Stager("cuda:0"), count // 2)
        except BaseException as e:
            failed.append(e)
            raise

    both = [threading.Thread(target=loop) for _ in range(2)]
    for t in both:
        t.start()
    for t in both:
        t.join()
    assert not failed
    assert FAKE["races"]() == 0 and FAKE["violations"]() == 0, FAKE["report"]()


if __name__ == "__main__":
    {f.__name__: f for f in (loader, page, fake, threads)}[sys.argv[1]]()
