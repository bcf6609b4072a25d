#!/usr/bin/env python3
"""A training loop's batches, from the host's memory to the device: four ways, and pinned memory.

  staging.py --library libfaultless.so [--smoke] [--limit SECONDS]

cases.py says how it runs. A batch is 256 images of 224 x 224 (38.5 MB), their labels, and 20 tensors
of 1 to 64 KiB; the model a ResNet-50, or a smaller one where there is no torchvision."""
import random
import statistics
import sys
import time

import cases
from cases import DEVICE, MIB, SMOKE, Skip

IMAGES, EDGE, STEPS = (4, 32, 3) if SMOKE else (256, 224, 20)


def batches():
    """As a DataLoader's workers leave them: pageable."""
    import torch
    sizes = random.Random(1)
    return [[torch.randint(255, (IMAGES, 3, EDGE, EDGE), dtype=torch.uint8),
             torch.randint(10, (IMAGES,)),
             *(torch.randint(255, (sizes.randint(1 << 10, 1 << 16),), dtype=torch.uint8)
               for _ in range(20))] for _ in range(4)]


def training_step():
    import torch
    from torch import nn
    try:
        from torchvision.models import resnet50
        model, name = resnet50(num_classes=10), "ResNet-50"
    except ImportError:
        widths, name = (3, 64, 128, 256, 512), "five convolutions"
        model = nn.Sequential(
            *(layer for a, b in zip(widths, widths[1:]) for layer in
              (nn.Conv2d(a, b, 3, stride=2, padding=1), nn.BatchNorm2d(b), nn.ReLU())),
            nn.Conv2d(512, 512, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(512, 10))
    kind = torch.float32 if SMOKE else torch.bfloat16
    model = model.to(DEVICE, kind, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(batch):
        images = batch[0].to(kind, memory_format=torch.channels_last) / 255
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(images).float(), batch[1]).backward()
        optimizer.step()
    return step, name


def per_tensor():
    """Each tensor by itself, from where it is."""
    return lambda batch: [t.to(DEVICE, non_blocking=True) for t in batch]


def prefetch():
    """pin_memory, and copies on a stream of their own: what is returned was copied one call
    earlier."""
    acc = cases.device()
    side, waits = acc.Stream(), []

    def push(batch):
        with acc.stream(side):
            pinned = batch if SMOKE else [t.pin_memory() for t in batch]
            waits.append([t.to(DEVICE, non_blocking=True) for t in pinned])
        if len(waits) < 2:
            return push(batch)
        ready = waits.pop(0)
        acc.current_stream().wait_stream(side)
        for t in ready if not SMOKE else ():
            t.record_stream(acc.current_stream())
        return ready
    return push


def packed():
    """All tensors into one pinned buffer of two, one copy."""
    import torch
    acc = cases.device()
    buffers, turn = [], [0]

    def push(batch):
        places, end = [], 0
        for t in batch:
            places.append(end)
            end += -(-t.numel() * t.element_size() // 512) * 512
        if len(buffers) < 2:
            buffers.append([torch.empty(end + (2 << 20), dtype=torch.uint8, pin_memory=not SMOKE),
                            acc.Event()])
        turn[0] ^= 1
        host, done = buffers[turn[0] % len(buffers)]
        if not SMOKE:
            done.synchronize()
        for t, at in zip(batch, places):
            size = t.numel() * t.element_size()
            host[at:at + size].view(t.dtype).copy_(t.flatten())
        whole = host[:end].to(DEVICE, non_blocking=True)
        if not SMOKE:
            done.record()
        return [whole[at:at + t.numel() * t.element_size()].view(t.dtype).view(t.shape)
                for t, at in zip(batch, places)]
    return push


def stager():
    """Ours."""
    import faultless.torch
    if not hasattr(faultless.torch, "Stager"):
        raise Skip("faultless.torch.Stager")
    return faultless.torch.Stager(DEVICE, slots=3).push


def host_part(push, data):
    """Of a batch, in us, when the device has nothing to do."""
    def one(batch):
        cases.device().synchronize()
        start = time.perf_counter()
        push(batch)
        return (time.perf_counter() - start) * 1e6
    return statistics.median(one(data[i % len(data)]) for i in range(STEPS))


def pipeline(make):
    """Images a second; what a batch costs the main thread, and how much of that is not waiting; for
    how much of it the device waits."""
    import torch
    push, (step, model), data = make(), training_step(), batches()
    acc, spent = cases.device(), [0.0]
    resident = [t.to(DEVICE) for t in data[0]]
    ragged = [sum(int(t.sum()) for t in b[2:]) for b in data]

    def loop(source):
        acc.synchronize()
        start = time.perf_counter()
        for i in range(STEPS):
            step(source(i))
        acc.synchronize()
        return (time.perf_counter() - start) / STEPS

    def staged(i):
        start = time.perf_counter()
        batch = push(data[i % len(data)])
        spent[0] += time.perf_counter() - start
        return batch
    wrong = 0
    for i in range(8): # which warms up, too; prefetch is one batch late
        batch = staged(i)
        wrong += sum(int(t.sum()) for t in batch[2:]) not in ragged
        step(batch)
        del batch
    alone = cases.median_of_3(lambda: loop(lambda _: resident))
    spent[0] = 0.0
    rounds = 1 if SMOKE else 3
    each = cases.median_of_3(lambda: loop(staged))
    return {"images_s": IMAGES / each, "main_us": spent[0] / STEPS / rounds * 1e6,
            "host_us": host_part(push, data), "idle": max(1 - alone / each, 0.0), "model": model, "wrong": wrong,
            "right": wrong == 0, "torch": torch.__version__}


def in_pipeline(make):
    def one(_allocator):
        return pipeline(make)
    one.__name__ = "pipeline_" + make.__name__
    return one


def pinned(_allocator):
    """Pinned memory: 2 GiB made, and copied to the device."""
    import torch
    size = 2 << 20 if SMOKE else 2 << 30
    to, host = torch.empty(size, dtype=torch.uint8, device=DEVICE), []
    empty_cache = getattr(torch._C, "_host_emptyCache", lambda: None)

    def make():
        host.clear()
        if not SMOKE:
            empty_cache()
        start = time.perf_counter()
        host.append(torch.empty(size, dtype=torch.uint8, pin_memory=not SMOKE))
        return (time.perf_counter() - start) * 1e3

    def copy():
        cases.device().synchronize()
        start = time.perf_counter()
        to.copy_(host[0], non_blocking=True)
        cases.device().synchronize()
        return size / (time.perf_counter() - start) / 1e9
    made = cases.median_of_3(make)
    host[0].fill_(3)
    return {"made_ms": made, "gb_s": cases.median_of_3(copy), "right": int((to != 3).sum()) == 0}


WAYS = {f"pipeline_{make.__name__}": in_pipeline(make)
        for make in (per_tensor, stager, prefetch, packed)}
CASES = {"pinned": (pinned,), **{name: (way,) for name, way in WAYS.items()}}
RUNS = [("pinned", "native", 20, True), ("pinned", "preload", 20, False),
        *((name, "preload" if name == "pipeline_stager" else "native", 25, True) for name in WAYS)]


def compare(found, allocator, results):
    own = results.get(("pinned", "native"))
    if own and allocator == "preload" and "pinned" in found:
        what, ours = "PyTorch's 2 GiB of pinned memory, registered", found["pinned"]
        cases.measure("staging", "B2", what, ours["made_ms"], "ms", "PyTorch's own", own["made_ms"])
        cases.bar("staging", "B2", what, ours["made_ms"] / own["made_ms"], 0.25)
        cases.measure("staging", "B1", "PyTorch's copy of it", ours["gb_s"], "GB/s",
                      "PyTorch's own", own["gb_s"])
    plain = results.get(("pipeline_per_tensor", "native"))
    for name, ours in found.items():
        for field, what, unit in (("images_s", "images a second", "/s"),
                                  ("main_us", "main thread, a batch", "us"),
                              ("host_us", "of that not waiting", "us"),
                                  ("idle", "share of the time that the device waits", "")):
            if plain and name.startswith("pipeline_") and ours is not plain:
                cases.measure("staging", "B12", f"{name[9:]}: {what}", ours[field], unit,
                              "per tensor", plain[field])


if __name__ == "__main__":
    sys.exit(cases.main("staging", CASES, RUNS, compare))
