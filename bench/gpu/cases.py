"""Cases with PyTorch, each in a process of its own with a time limit: what they find is lines of
JSON, as tools/device collects them; all else that they say goes to standard error.

A case is some functions, each with one result. One that fails costs its own; a crash or the time
limit costs those after it. Without PyTorch, or without a device for it, the last line is `SKIP
NAME: ...` and the status 77. A smoke run is on the CPU, small: the figures mean nothing. A case that
there is no time left for makes the status 75, one that failed 1."""
import argparse
import faulthandler
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

MIB = 1 << 20
OUT_OF_TIME = 75  # EX_TEMPFAIL
FILE = os.path.abspath(sys.argv[0])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SMOKE = "--smoke" in sys.argv
DEVICE = "cpu" if SMOKE else "cuda"
# What an allocator needs beside its name: PyTorch's setting. The others are faultless's.
THEIRS = {"native": "", "expandable": "expandable_segments:True",
          "async": "backend:cudaMallocAsync"}
PRELOAD = {"preload": "pinned_use_cuda_host_register:True"}


class Skip(Exception):
    """What is not there."""


def say(section, **fields):
    print(json.dumps({"kind": fields.pop("kind", "fact"), "section": section, **fields},
                     separators=(",", ":")), flush=True)


def device():
    """torch.cuda, or what stands in for it on the CPU."""
    import torch
    return torch.cpu if SMOKE else torch.cuda


def median_of_3(measure):
    return statistics.median(measure() for _ in range(1 if SMOKE else 3))


def use(allocator):
    """faultless serves device memory from now on, where it is asked to."""
    if allocator in THEIRS or allocator in PRELOAD:
        return
    import faultless.torch
    if not faultless.torch.use(allocator, pinned=False):
        sys.exit("faultless.torch.use: refused")


def child(functions, allocator):
    """A case, in this process: its functions one after the other."""
    faulthandler.enable()
    for function in functions:
        try:
            found = function(allocator)
        except Skip as what:
            found = {"skipped": str(what)}
        except Exception as error: # pylint: disable=broad-except
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print("RESULT " + json.dumps([function.__name__, found]), flush=True)


def environment(allocator, library):
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT + "/python", env.get("PYTHONPATH")]))
    if SMOKE:
        env["OMP_NUM_THREADS"] = "1"
    setting = {**THEIRS, **PRELOAD}.get(allocator)
    if setting:
        env["PYTORCH_CUDA_ALLOC_CONF"] = setting
    if allocator not in THEIRS:
        env["LD_PRELOAD"] = library
        env["LD_LIBRARY_PATH"] = os.pathsep.join( # PyTorch opens it by its name
            filter(None, [os.path.dirname(library), env.get("LD_LIBRARY_PATH")]))
    return env


def outcome_of(found):
    if "skipped" in found:
        return "skipped"
    return "failed" if "error" in found else "ok" if found.get("right", True) else "wrong"


def run(section, case, names, allocator, args, limit):
    """A case in a process of its own: what its functions found."""
    start, results = time.monotonic(), {}
    command = [sys.executable, FILE, "--library", args.library, "--case", case, "--allocator",
               allocator] + ["--smoke"] * args.smoke
    print(f"-- {case}/{allocator}", file=sys.stderr, flush=True)
    with tempfile.TemporaryFile("w+") as out:
        try:
            status = subprocess.run(command, env=environment(allocator, args.library), stdout=out,
                                    timeout=limit, check=False).returncode
            ended = "crashed" if status < 0 else "failed"
        except subprocess.TimeoutExpired:
            ended = "hung"
        out.seek(0)
        for line in out:
            if line.startswith("RESULT ") and line.endswith("\n"):
                name, found = json.loads(line[7:])
                results[name] = found
            else:
                sys.stderr.write(line)
    for name in names:
        found = results.get(name)
        outcome = ended if found is None else outcome_of(found)
        say(section, name=f"{name}/{allocator}", outcome=outcome,
            seconds=round(time.monotonic() - start, 1), **(found or {}))
        if outcome not in ("ok", "skipped"):
            print(f"{name}/{allocator}: {outcome}", file=sys.stderr)
            results.pop(name, None)
    lost = len(results) < len(names)
    return {n: f for n, f in results.items() if outcome_of(f) == "ok"}, lost


def measure(section, number, what, ours, unit, against, theirs):
    say(section, kind="measure", number=number, measure=what, ours=ours, unit=unit,
        against=against, theirs=theirs)


def bar(section, number, what, value, at_most):
    say(section, kind="bar", number=number, measure=what, of="ratio", value=value, at_most=at_most,
        met=value <= at_most)


def missing(limit):
    """'', or what there is instead of PyTorch with a device. In a process of its own; a first import
    from a cold disk takes long."""
    text = ("import torch\n"
            f"has = hasattr(torch.cpu, 'Event') if {SMOKE} else torch.cuda.is_available()\n"
            "assert has, f'{torch.__version__}, which is old or without a device'\n"
            "print(torch.__version__)")
    try:
        done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"an import of more than {limit:.0f} s"
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    return ""


def main(section, cases, runs, compare):
    """cases: NAME: its functions. runs: (NAME, allocator, seconds, in a smoke run).
    compare(found, allocator, results): after each run, what it has to say of what that found, and of
    results[function, allocator] until then."""
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--library", required=True)
    p.add_argument("--smoke", action="store_true")
    p.add_argument("--limit", type=float, default=85, help="seconds for all cases together")
    p.add_argument("--case", choices=cases)
    p.add_argument("--allocator", default="native")
    args = p.parse_args()
    if args.case:
        child(cases[args.case], args.allocator)
        return 0
    end = time.monotonic() + args.limit
    got = missing(max(args.limit * 0.6, 10))
    if got:
        print(f"SKIP {section}: needs PyTorch with CUDA, got: {got}", file=sys.stderr)
        return 77
    results, left_out, lost = {}, 0, False
    for case, allocator, seconds, smoke in runs:
        names = [f.__name__ for f in cases[case]]
        limit = min(seconds * (4 if SMOKE else 1), end - time.monotonic())
        if args.smoke and not smoke:
            continue
        if limit < 4:
            for name in names:
                say(section, name=f"{name}/{allocator}", outcome="no time left")
            left_out += 1
            continue
        found, bad = run(section, case, names, allocator, args, limit)
        lost = lost or bad
        results.update({(name, allocator): f for name, f in found.items()})
        compare(found, allocator, results)
    if left_out:
        print(f"{left_out} of {len(runs)} cases had no time left", file=sys.stderr)
    return 1 if lost else OUT_OF_TIME if left_out else 0
