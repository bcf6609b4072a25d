#!/usr/bin/env python3
"""PyTorch with faultless's pools and with its own allocators: is it right, and what does it cost.

  training.py --library libfaultless.so [--smoke] [--limit SECONDS]

cases.py says how it runs."""
import ctypes
import statistics
import sys
import time

import cases
from cases import DEVICE, MIB, SMOKE, Skip

WIDTH, LAYERS, HEADS, WORDS, LONGEST = (32, 2, 2, 100, 64) if SMOKE else (768, 12, 12, 50257, 1024)
CAP = 8 << 30


# ---------------------------------------------------------------------------- is it right

def graph(_allocator):
    """A captured graph keeps its memory: eager tensors between its replays do not get it."""
    import torch
    x = torch.zeros(1 << 20, device="cuda")

    def body():
        return ((x * 2 + 1) * 3).clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            body()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = body()
    wrong = torch.zeros((), device="cuda", dtype=torch.int64)
    for i in range(300):
        eager = [torch.full((1 << 18,), 7.0, device="cuda") for _ in range(4)]
        x.fill_(i)
        captured.replay()
        wrong += (y != (i * 2 + 1) * 3).sum() + sum((e != 7).sum() for e in eager)
        del eager
    del y, captured
    torch.cuda.empty_cache()
    return {"wrong": int(wrong), "right": int(wrong) == 0}


def record_stream(_allocator):
    """Memory that a second stream still reads is not given out again."""
    import torch
    side, wrong = torch.cuda.Stream(), 0
    for i in range(20):
        x = torch.full((1 << 20,), float(i), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            y = x.clone()
        x.record_stream(side)
        del x
        again = torch.full((1 << 20,), -1.0, device="cuda")
        torch.cuda.synchronize()
        wrong += int((y != i).sum())
        del again, y
    return {"wrong": wrong, "right": wrong == 0}


def out_of_memory(_allocator):
    """Too much is PyTorch's own exception; then there is memory, and what is cached serves another
    size."""
    import torch
    raised, is_own = "nothing", False
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        raised, is_own = f"{type(error).__name__}: {error}"[:160], \
            isinstance(error, torch.OutOfMemoryError)
    works = float(torch.ones(1000, device="cuda").sum()) == 1000
    free, _ = torch.cuda.mem_get_info()
    small = torch.empty(int(free * 0.6), dtype=torch.uint8, device="cuda")
    del small # cached, and in the way of the next
    large = torch.empty(int(free * 0.8), dtype=torch.uint8, device="cuda")
    return {"raised": raised, "works_after": works,
            "right": is_own and works and large.numel() > 0}


def mem_pool(_allocator):
    """torch.cuda.MemPool over our allocator: PyTorch's statistics and graphs go on working."""
    import torch
    import faultless.torch
    if not hasattr(faultless.torch, "mem_pool"):
        raise Skip("faultless.torch.mem_pool")
    with torch.cuda.use_mem_pool(faultless.torch.mem_pool()):
        x = torch.ones(1 << 20, device="cuda")
        total = float((x + x).sum())
    held = torch.cuda.memory_stats()["allocated_bytes.all.current"]
    captured = graph("mem_pool")
    return {"total": total, "allocated": held, "wrong": captured["wrong"],
            "right": total == 2 << 20 and held >= 4 << 20 and captured["right"]}


def cupy_arrays(_allocator):
    """CuPy's arrays from its own pool and from ours: ns an array."""
    try:
        import cupy
    except ImportError as error:
        raise Skip(str(error)) from error
    import faultless.cupy

    def arrays():
        n, start = 5000, time.perf_counter()
        for _ in range(n):
            cupy.empty(1 << 16, dtype=cupy.uint8)
        return (time.perf_counter() - start) / n * 1e9
    own = cases.median_of_3(arrays)
    if not faultless.cupy.use():
        raise Skip("faultless.cupy.use")
    total = int(cupy.arange(1 << 20).sum())
    return {"own_ns": own, "ours_ns": cases.median_of_3(arrays),
            "right": total == (1 << 19) * ((1 << 20) - 1)
            and faultless.cupy.pool().stats()["allocs"] > 0}


def rmm_buffers(_allocator):
    """RMM's buffers from our pool, by its callbacks."""
    try:
        import rmm
    except ImportError as error:
        raise Skip(str(error)) from error
    import faultless.gpu
    library = faultless.gpu.library()
    library.fl_gpu_cupy_alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.fl_gpu_cupy_alloc.restype = ctypes.c_void_p
    library.fl_gpu_cupy_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    rmm.mr.set_current_device_resource(rmm.mr.CallbackMemoryResource(
        lambda size, _stream: library.fl_gpu_cupy_alloc(None, size, 0),
        lambda pointer, _size, _stream: library.fl_gpu_cupy_free(None, pointer, 0)))
    data = bytes(range(256)) * 4096
    return {"right": rmm.DeviceBuffer.to_device(data).tobytes() == data}


# ---------------------------------------------------------------------------- what it costs

def gpt():
    """GPT-2's small model: what makes a training step and the tokens of a batch."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.three, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                      nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            heads = [t.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                     for t in self.three(self.before(x)).chunk(3, -1)]
            seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).flatten(-2))
            return x + self.wide(self.between(x))
    torch.manual_seed(1)
    model = nn.ModuleDict({"word": nn.Embedding(WORDS, WIDTH), "place": nn.Embedding(LONGEST, WIDTH),
                           "blocks": nn.Sequential(*(Block() for _ in range(LAYERS))),
                           "head": nn.Linear(WIDTH, WORDS)}).to(DEVICE, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())

    def tokens(batch, length):
        return torch.randint(WORDS, (batch, length), device=DEVICE)

    def step(words):
        optimizer.zero_grad(set_to_none=True)
        places = torch.arange(words.shape[1], device=DEVICE)
        x = model["blocks"](model["word"](words) + model["place"](places))
        loss = functional.cross_entropy(model["head"](x).flatten(0, 1), words.flatten())
        loss.backward()
        optimizer.step()
        return loss
    return step, tokens


def memory(allocator):
    """At their peaks, in bytes; and what the driver was asked for."""
    import torch
    if SMOKE:
        return {"reserved": 1, "allocated": 1, "driver_allocs": 0}
    if allocator in cases.THEIRS:
        stats = torch.cuda.memory_stats()
        return {"reserved": torch.cuda.max_memory_reserved(),
                "allocated": torch.cuda.max_memory_allocated(),
                "driver_allocs": stats.get("num_device_alloc", 0)}
    import faultless.gpu
    import faultless.torch
    stats = faultless.torch.pool().stats()
    return {"reserved": faultless.gpu.device_stats(0)["held_peak_bytes"],
            "allocated": stats["occupied_peak_bytes"], "driver_allocs": stats["driver_allocs"]}


def timed(work):
    """In ms, what the device does included."""
    start = time.perf_counter()
    work()
    cases.device().synchronize()
    return (time.perf_counter() - start) * 1e3


def launch_bound(allocator):
    """One sequence of 128: the host's part is the longest."""
    step, tokens = gpt()
    words = tokens(1, 16 if SMOKE else 128)

    def whole():
        step(words)
    for _ in range(2 if SMOKE else 20):
        whole()
    took = [[timed(whole) for _ in range(3 if SMOKE else 50)] for _ in range(3)]
    each = sorted(ms for round_ in took for ms in round_)
    return {"step_ms": statistics.median(map(statistics.median, took)),
            "p99_ms": each[len(each) * 99 // 100], "loss": float(step(words).detach()), **memory(allocator)}


def varying(allocator):
    """Lengths at random, as many sequences as the tokens allow, under a cap: ms a step, what is held
    for it, and with how many tokens there is no memory left."""
    import random
    import torch
    step, tokens = gpt()
    lengths = random.Random(1)
    if not SMOKE:
        _, total = torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction(CAP / total)

    def some(budget, n):
        def one():
            length = lengths.randint(LONGEST // 16, LONGEST)
            step(tokens(max(budget // length, 1), length))
        return [timed(one) for _ in range(n)]
    budget, end = (128, 0) if SMOKE else (4096, time.monotonic() + 10)
    some(budget, 5)
    found = {"step_ms": cases.median_of_3(lambda: statistics.median(some(budget, 10))),
             **memory(allocator), "tokens": budget, "stopped": "out of time"}
    try:
        while time.monotonic() < end:
            some(int(budget * 1.15), 5)
            budget = found["tokens"] = int(budget * 1.15)
    except RuntimeError as error:
        found["stopped"] = type(error).__name__
    return found


def pairs(_allocator):
    """An alloc and its free by PyTorch's own entry, in ns."""
    import torch
    if SMOKE:
        raise Skip("a device")
    alloc = torch._C._cuda_cudaCachingAllocator_raw_alloc
    free = torch._C._cuda_cudaCachingAllocator_raw_delete
    torch.cuda.init()
    torch.ones(1, device="cuda")

    def some():
        n, start = 20000, time.perf_counter()
        for _ in range(n):
            free(alloc(1 << 16, 0))
        return (time.perf_counter() - start) / n * 1e9
    some()
    return {"pair_ns": cases.median_of_3(some)}


def served(function):
    """The function, with the pools in use before it."""
    def first(allocator):
        cases.use(allocator)
        return function(allocator)
    first.__name__ = function.__name__
    return first


CASES = {"checks": (served(graph), record_stream, out_of_memory), "mem_pool": (mem_pool,),
         "arrays": (cupy_arrays, rmm_buffers), "train": (served(launch_bound), varying, pairs)}
RUNS = [("checks", "auto_growth", 30, False),
        ("mem_pool", "preload", 20, False), ("arrays", "preload", 20, False),
        *(("train", name, 40, name == "native")
          for name in ("native", "auto_growth", "expandable", "async"))]


def compare(found, allocator, results):
    what, own = "a launch-bound training step", results.get(("launch_bound", "native"))
    ours = found.get("launch_bound")
    if own is None or ours is None or ours is own:
        return
    cases.measure("torch", "B10", f"{what}, {allocator}", ours["step_ms"], "ms", "PyTorch's own",
                  own["step_ms"])
    if allocator == "auto_growth":
        cases.bar("torch", "B10", what, ours["step_ms"] / own["step_ms"], 1.01)
    cases.measure("torch", "B10", f"memory held for it, {allocator}", ours["reserved"] / MIB, "MiB",
                  "PyTorch's own", own["reserved"] / MIB)
    if allocator == "auto_growth":
        cases.bar("torch", "B10", what, ours["reserved"] / own["reserved"], 0.95)


if __name__ == "__main__":
    sys.exit(cases.main("torch", CASES, RUNS, compare))
