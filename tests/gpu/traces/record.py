#!/usr/bin/env python3
"""Records what three models ask PyTorch's allocator for while they are trained, on the CPU.

    record.py transformer|cnn|lengths >FILE

One line a step, the first for what is there before training. +N: N bytes are allocated. -N: the
block allocated N allocations ago is freed; so a step that is as the one before it is the same line.
"""
import random
import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function


def transformer():
    """TransformerEncoder of six layers, AdamW; four steps alike."""
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 6)
    data = torch.randn(8, 64, 256)
    return model, torch.optim.AdamW(model.parameters(), foreach=True), [(data, None)] * 4


class Block(nn.Module):
    def __init__(self, of, to, stride):
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(of, to, 3, stride, 1, bias=False), nn.BatchNorm2d(to), nn.ReLU(),
            nn.Conv2d(to, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to))
        self.short = nn.Sequential() if of == to and stride == 1 else nn.Sequential(
            nn.Conv2d(of, to, 1, stride, bias=False), nn.BatchNorm2d(to))

    def forward(self, x):
        return torch.relu(self.way(x) + self.short(x))


def cnn():
    """ResNet of 18 layers, SGD with momentum; four steps alike."""
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    of = 64
    for to, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(of, to, stride), Block(to, to, 1)]
        of = to
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return model, optimizer, [(torch.randn(16, 3, 32, 32), None)] * 4


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(2000, 256)
        layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 3)
        self.out = nn.Linear(256, 2000)

    def forward(self, x):
        return self.out(self.layers(self.words(x)))


def lengths():
    """A model of language, AdamW; each batch as long as its longest sentence: eight lengths."""
    model = Language()
    data = [torch.randint(2000, (8, n)) for n in random.Random(1).sample(range(16, 160), 8)]
    return model, torch.optim.AdamW(model.parameters(), foreach=True), [(d, d) for d in data]


def train(model, optimizer, batches):
    for batch, target in batches:
        with record_function("STEP"):
            pass
        optimizer.zero_grad(set_to_none=True)
        out = model(batch)
        if target is None:
            loss = out.square().mean()
        else:
            loss = nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())
        del out
        loss.backward()
        optimizer.step()
        del loss


def events(prof):
    """(time, bytes, address), in order; bytes 0: a step begins."""
    out = []
    todo = list(prof.profiler.kineto_results.experimental_event_tree())
    while todo:
        e = todo.pop()
        todo += e.children
        if "Allocation" in str(e.tag):
            out.append((e.start_time_ns, e.extra_fields.alloc_size, e.extra_fields.ptr))
        elif e.name == "STEP":
            out.append((e.start_time_ns, 0, 0))
    return sorted(out, key=lambda e: e[0])


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, optimizer, batches = globals()[sys.argv[1]]()
    first = {t.data_ptr(): t for t in [*model.parameters(), *model.buffers()]}
    first.update((b.data_ptr(), b) for b, _ in batches)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        train(model, optimizer, batches)
    line = [f"+{t.numel() * t.element_size()}" for t in first.values()]
    live, n = {}, len(line)
    for _, size, address in events(prof):
        if size == 0:
            print(" ".join(line))
            line = []
        elif size > 0:
            live[address] = n
            n += 1
            line.append(f"+{size}")
        elif address in live:
            line.append(f"-{n - live.pop(address)}")
    print(" ".join(line))


main()
