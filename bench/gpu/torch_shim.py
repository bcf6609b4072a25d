#!/usr/bin/env python3
"""PyTorch with faultless's pools against PyTorch's own allocator, on a device.

  torch_shim.py --library libfaultless.so [--smoke] [--limit SECONDS]

Each case is a process of its own with a time limit; what it finds is a line of JSON. Without
PyTorch, or without a CUDA device for it, the last line is `SKIP torch: ...` and the status 77.
A case that there is no time left for makes the status 75, one that failed 1."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

MIB = 1 << 20
OUT_OF_TIME = 75  # EX_TEMPFAIL


def install(strategy):
    """faultless serves device memory from now on. What begins a step, and what tells the peak."""
    import faultless.gpu
    import faultless.torch
    if not faultless.torch.use(strategy, pinned=False):
        sys.exit("faultless.torch.use: refused")

    def peak():
        return faultless.gpu.device_stats(0)["held_peak_bytes"]
    return faultless.torch.pool().step, peak


def nothing():
    """PyTorch's own allocator knows no steps."""


def training(begin_step, peak):
    """A transformer's training steps: the median in ms, and the memory that they take."""
    import torch
    torch.manual_seed(1)
    model = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 6).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(32, 256, 512, device="cuda")
    took = []
    for step in range(70):
        torch.cuda.synchronize()
        start = time.perf_counter()
        begin_step()
        optimizer.zero_grad(set_to_none=True)
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        if step >= 20:
            took.append((time.perf_counter() - start) * 1e3)
    reserved = peak() if peak else torch.cuda.max_memory_reserved()
    return {"step_ms": statistics.median(took), "reserved": reserved, "loss": float(loss)}


def out_of_memory(_begin_step, _peak):
    """Too much is an exception, after which there is memory; what is cached serves another size."""
    import torch
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device="cuda")
        raised = "nothing"
    except RuntimeError as error:
        raised = str(error)[:160]
    works = float(torch.ones(1000, device="cuda").sum()) == 1000
    free, _ = torch.cuda.mem_get_info()
    small = torch.empty(int(free * 0.6), dtype=torch.uint8, device="cuda")
    del small # cached, and in the way of the next
    large = torch.empty(int(free * 0.8), dtype=torch.uint8, device="cuda")
    return {"raised": raised, "works_after": works, "cache_given_back": large.numel() > 0,
            "right": "out of memory" in raised and works}


def graph(_begin_step, _peak):
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
    wrong = 0
    for i in range(20):
        eager = [torch.full((1 << 20,), 7.0, device="cuda") for _ in range(4)]
        x.fill_(i)
        captured.replay()
        wrong += int((y != (i * 2 + 1) * 3).sum()) + sum(int((e != 7).sum()) for e in eager)
        del eager
    del y, captured
    torch.cuda.empty_cache()
    return {"wrong": wrong, "right": wrong == 0}


def record_stream(_begin_step, _peak):
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


def pinned(_begin_step, _peak):
    """Pinned memory: 1 GiB made, and copied to the device."""
    import torch
    torch.cuda.init()
    to = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    start = time.perf_counter()
    host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    made = time.perf_counter() - start
    host.fill_(3)
    speeds = []
    for _ in range(12):
        torch.cuda.synchronize()
        start = time.perf_counter()
        to.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        speeds.append((1 << 30) / (time.perf_counter() - start) / 1e9)
    return {"made_ms": made * 1e3, "gb_s": statistics.median(speeds),
            "right": int((to != 3).sum()) == 0}


CASES = {"training": training, "oom": out_of_memory, "graph": graph, "record_stream": record_stream,
         "pinned": pinned}
# What runs: the case, and the allocator. None: PyTorch's own; "preload": that, and ours for malloc.
RUNS = [("training", None), ("training", "planned"), ("training", "auto_growth"),
        ("oom", "auto_growth"), ("graph", "auto_growth"), ("record_stream", "auto_growth"),
        ("pinned", None), ("pinned", "preload"), ("oom", None), ("graph", None),
        ("record_stream", None)]


def say(**fields):
    print(json.dumps(fields, separators=(",", ":")), flush=True)


def child(case, allocator):
    """One case, in this process."""
    own = allocator in (None, "preload")
    begin_step, peak = (nothing, None) if own else install(allocator)
    print("RESULT " + json.dumps(CASES[case](begin_step, peak)), flush=True)


def run(case, allocator, library, limit):
    """One case in a process of its own: what it found, or None."""
    env = dict(os.environ)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [root + "/python", env.get("PYTHONPATH")]))
    if allocator is not None:
        env["LD_PRELOAD"] = library
    if allocator == "preload":
        env["PYTORCH_CUDA_ALLOC_CONF"] = \
            "pinned_use_cuda_host_register:True,pinned_num_register_threads:8"
    elif allocator is not None: # which PyTorch opens by its name
        env["LD_LIBRARY_PATH"] = os.pathsep.join(
            filter(None, [os.path.dirname(library), env.get("LD_LIBRARY_PATH")]))
    name, found, text = f"{case}/{allocator or 'pytorch'}", None, ""
    start = time.monotonic()
    try:
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--library", library,
                               "--case", case, "--allocator", allocator or ""], env=env,
                              capture_output=True, text=True, timeout=limit, check=False)
        outcome = "ok" if done.returncode == 0 else "crashed" if done.returncode < 0 else "failed"
        text = "\n".join(done.stderr.splitlines()[-3:]) if outcome != "ok" else ""
        for line in done.stdout.splitlines():
            if line.startswith("RESULT "):
                found = json.loads(line[7:])
    except subprocess.TimeoutExpired:
        outcome = "hung"
    if found is None and outcome == "ok":
        outcome = "failed"
    if found is not None and not found.get("right", True):
        outcome = "wrong"
    say(kind="fact", section="torch", name=name, outcome=outcome, text=text,
        seconds=round(time.monotonic() - start, 1), **(found or {}))
    if outcome != "ok":
        print(f"{name}: {outcome}", file=sys.stderr)
    return found if outcome == "ok" else None


def bar(number, measure, ours, theirs, unit, most):
    say(kind="measure", section="torch", number=number, measure=measure, ours=ours, unit=unit,
        against="PyTorch's own", theirs=theirs)
    say(kind="bar", section="torch", number=number, measure=measure, of="ratio",
        value=ours / theirs, at_most=most, met=ours / theirs <= most)


def compare(results):
    own, ours = results.get(("training", None)), results.get(("training", "planned"))
    if own and ours:
        bar("B10", "a training step, planned", ours["step_ms"], own["step_ms"], "ms", 1.0)
        bar("B10", "memory held for the training, planned", ours["reserved"] / MIB,
            own["reserved"] / MIB, "MiB", 0.95)
    own, ours = results.get(("pinned", None)), results.get(("pinned", "preload"))
    if own and ours:
        bar("B2", "PyTorch's 1 GiB of pinned memory, registered", ours["made_ms"], own["made_ms"],
            "ms", 0.25)
        say(kind="measure", section="torch", number="B1", measure="PyTorch's copy of it",
            ours=ours["gb_s"], unit="GB/s", against="PyTorch's own", theirs=own["gb_s"])


def have_cuda():
    """'', or what there is instead of PyTorch with a device. In a process of its own."""
    text = ("import torch\n"
            "has = torch.cuda.is_available()\n"
            "assert has, 'PyTorch ' + torch.__version__ + ' without a device'\n"
            "print(torch.__version__)")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60,
                          check=False)
    if done.returncode == 0:
        say(kind="fact", section="torch", name="version", version=done.stdout.strip())
        return ""
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--library", required=True)
    p.add_argument("--smoke", action="store_true")
    p.add_argument("--limit", type=float, default=85, help="seconds for all cases together")
    p.add_argument("--case", choices=CASES)
    p.add_argument("--allocator", default="")
    args = p.parse_args()
    if args.case:
        child(args.case, args.allocator or None)
        return 0
    missing = "a smoke run: it does not load on the fake driver" if args.smoke else have_cuda()
    if missing:
        print(f"SKIP torch: needs PyTorch with CUDA, got: {missing}", file=sys.stderr)
        return 77
    end = time.monotonic() + args.limit
    results, left_out = {}, 0
    for case, allocator in RUNS:
        limit = min(25, end - time.monotonic())
        if limit < 4:
            say(kind="fact", section="torch", name=f"{case}/{allocator or 'pytorch'}",
                outcome="no time left")
            left_out += 1
            continue
        results[case, allocator] = run(case, allocator, args.library, limit)
        if (case, allocator) in (("training", "planned"), ("pinned", "preload")):
            compare({k: v for k, v in results.items() if k[0] == case})
    if left_out:
        print(f"{left_out} of {len(RUNS)} cases had no time left", file=sys.stderr)
    return 1 if not all(results.values()) else OUT_OF_TIME if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
