"""What the commands of bench/ share: bars, runs under several allocators, what a program has live.

    args = measure.arguments(__doc__, rounds=3)
    bars = measure.Bars("name", args)
    runs = measure.compare(args, [program, ...])
    bars.at_most("what", runs.median("faultless", "step_ms"), 12, "ms")
    bars.finish()"""
import argparse
import datetime
import json
import math
import os
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = "/usr/bin/python3"
WORKLOADS = os.path.join(TOP, "bench/workloads/")
ALLOCATORS = "glibc,glibc-tuned,jemalloc,jemalloc-tuned,tcmalloc,mimalloc,faultless"
OURS = "faultless"
STRONGEST = "glibc,glibc-tuned,jemalloc-tuned,tcmalloc-tuned,mimalloc-tuned," + OURS    # each peer's settings; bench/picture draws them
HUGE_MIB = 2


def parser(doc, rounds, allocators=ALLOCATORS):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=rounds,
                   help=f"runs under each allocator (default {rounds or 'what the time allows'})")
    p.add_argument("--allocators", default=allocators, metavar="LIST", help="as faultstat(1) names them")
    p.add_argument("--build", default=TOP + "/build/release", type=os.path.abspath, metavar="DIR")
    p.add_argument("--out", metavar="FILE.json", help="all figures, as JSON")
    return p


def out(cmd, env=None, **kw):
    """What a command prints; its failure is ours."""
    p = subprocess.run(cmd, env={**os.environ, **(env or {})}, text=True, capture_output=True, **kw)
    if p.returncode != 0:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(cmd)} failed: {p.returncode}\n{p.stderr}")
    return p.stdout


def run(cmd, env=None):
    """Runs it to its end, once: (what it said, seconds, what the kernel counted of it)."""
    began = time.monotonic()
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True, errors="replace",
                         env={**os.environ, **(env or {})})
    said = p.stdout.read()
    _, status, used = os.wait4(p.pid, 0)
    took = time.monotonic() - began
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        sys.exit(f"{' '.join(cmd)} failed: {p.returncode}")
    return said, took, used


def commit():
    """Of this tree; None where git knows none."""
    try:
        p = subprocess.run(["git", "-C", TOP, "describe", "--always", "--dirty", "--exclude=*"], text=True,
                           capture_output=True)
    except FileNotFoundError:
        return None
    return p.stdout.strip() if p.returncode == 0 else None


class Bars:
    """Rows of (what, measured, limit, met or not), printed as they come; and what they were made from."""

    def __init__(self, name, args):
        self.name, self.args, self.rows, self.workloads, self.tables = name, args, [], {}, []
        asked = [[key.replace("_", "-"), value] for key, value in vars(args).items()
                 if key not in ("out", "build", "dir") and value not in (None, False)]
        self.asked = shlex.join([f"bench/{name}", *(word for k, v in asked if v != ""
                                                    for word in ([f"--{k}"] if v is True else [f"--{k}", str(v)]))])

    def row(self, what, value, limit, met, unit="", note=""):
        """`met` None: a figure without a bar. `value` infinite: it never came to that."""
        text = f"{value:12.3f}" if math.isfinite(value) else f"{'never':>12s}"
        verdict = "" if met is None else "met" if met else "MISSED"
        bound = "" if met is None else f"bar {limit:<8g} "
        print(f"{what:62s} {text} {unit:5s} {bound}{verdict} {f'({note})' * bool(note)}".rstrip(), flush=True)
        self.rows.append({"bar": what, "value": value if math.isfinite(value) else None, "limit": limit, "unit": unit,
                          "met": None if met is None else bool(met), "note": note})

    def at_most(self, what, value, limit, unit="", note=""):
        self.row(what, value, limit, value <= limit, unit, note)

    def at_least(self, what, value, limit, unit="", note=""):
        self.row(what, value, limit, value >= limit, unit, note)

    def below(self, what, value, limit, unit=""):
        self.row(what, value, limit, value < limit, unit)

    def figure(self, what, value, unit="", note=""):
        self.row(what, value, None, None, unit, note)

    def table(self, title, runs, columns):
        """One line an allocator. columns: (heading, decimals, figure), a figure being a function from the allocator's
        name to a number, or the key of what faultstat or the program reported: its median."""
        lines = [[name] + [runs.median(name, f) if isinstance(f, str) else f(name) for _, _, f in columns]
                 for name in runs.names]
        print(f"  {title}, {runs.data['rounds']} rounds: " + ", ".join(heading for heading, _, _ in columns))
        for line in lines:
            cells = (f"{v:.{d}f}" if math.isfinite(v) else "never" for v, (_, d, _) in zip(line[1:], columns))
            print(f"    {line[0]:24s}" + "".join(f"{cell:>12s}" for cell in cells), flush=True)
        finite = [[v if isinstance(v, str) or math.isfinite(v) else None for v in line] for line in lines]
        self.tables.append({"title": title, "columns": [[heading, decimals] for heading, decimals, _ in columns],
                            "lines": finite, "data": runs.data})

    def finish(self):
        if self.args.out:
            with open(self.args.out, "w") as f:
                json.dump({"name": self.name, "asked": self.asked, "commit": commit(),
                           "date": datetime.date.today().isoformat(), "bars": self.rows, "workloads": self.workloads,
                           "tables": self.tables}, f, indent=1)
        judged = [r for r in self.rows if r["met"] is not None]
        missed = [r["bar"] for r in judged if not r["met"]]
        print(f"{len(judged) - len(missed)} of {len(judged)} bars met" + "".join("\n  missed: " + m for m in missed))
        sys.exit(1 if missed else 0)


class Runs:
    """What `faultstat compare` wrote: figures of its own, and those that the program reported in its SUMMARY."""

    def __init__(self, data):
        self.data = data
        self._of = {a["name"]: a["runs"] for a in data["allocators"] if a.get("present")}
        self.names = list(self._of)

    def values(self, name, key):
        """One for each round, in order. A negative figure of a program means never."""
        found = []
        for run in self._of[name]:
            reported = run.get("reported", {})
            value = run[key] if key in run else reported[key]
            found.append(math.inf if key in reported and value < 0 else value)
        return found

    def median(self, name, key):
        return statistics.median(self.values(name, key))

    def has(self, key):
        return all(key in run or key in run.get("reported", {}) for runs in self._of.values() for run in runs)

    def all_median(self, key):
        """Of every run of every allocator: for what does not depend on the allocator."""
        return statistics.median(value for name in self.names for value in self.values(name, key))

    def best_peer(self, key):
        """(name, median) of the least among all but ours; (none, infinite) when there are no others."""
        peers = [(self.median(n, key), n) for n in self.names if not n.startswith(OURS)]
        value, name = min(peers, default=(math.inf, "none"))
        return name, value


def compare(args, command, rounds=None, allocators=None, variants=(), env=(), warm_mib=0, warmup=None,
            interval_ms=None, step_regex=None):
    """Run a command under all allocators, interleaved.
    variants: definitions of allocators as faultstat's -a takes them, each with its variables."""
    names = args.allocators if allocators is None else allocators
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        cmd = [args.build + "/faultstat", "compare", "-n", str(rounds or args.rounds), "--json", f.name]
        for definition in [names] * bool(names) + list(variants):
            cmd += ["-a", definition]
        for variable in env:
            cmd += ["-e", variable]
        for option, value in (("--warm", warm_mib or None), ("--steps-warmup", warmup), ("--interval", interval_ms),
                              ("--step-regex", step_regex)):
            cmd += [option, str(value)] if value is not None else []
        p = subprocess.run(cmd + ["--", *command], stdout=subprocess.DEVNULL)
        if p.returncode != 0:
            sys.exit(f"{os.path.basename(sys.argv[0])}: a run of {' '.join(command)} failed")
        runs = Runs(json.load(open(f.name)))
    wanted = {name for name in names.split(",") if name.startswith(OURS)} | {
        v.split("=")[0] for v in variants if v.split("=")[0].startswith(OURS)}
    if wanted - set(runs.names):
        sys.exit(f"{os.path.basename(sys.argv[0])}: no {', '.join(wanted)}: build first, or set FAULTLESS_LIB")
    return runs


def live_bytes(path):
    """From a recording of bench/fit's tracer: the peak of live bytes in blocks of 64 KiB and more, and what was live at
    each mark."""
    size, live, peak, marks = {}, 0, 0, []
    with open(path, "rb") as f:
        for addr, n, _ in struct.iter_unpack("=QQQ", f.read()):
            if addr == 0 and n == 0:
                marks.append(live)
                continue
            live += n - size.pop(addr, 0)
            if n:
                size[addr] = n
            peak = max(peak, live)
    return peak, marks


def live_max_mib(build, cmd):
    """The live maximum of a program, from a run under the tracer."""
    with tempfile.TemporaryDirectory() as d:
        out(cmd, {"LD_PRELOAD": build + "/bench/fit_trace.so", "FIT_TRACE": d + "/trace"}, cwd=WORKLOADS)
        return live_bytes(d + "/trace")[0] / 2**20


def footprint(args, cmd):
    """(live maximum, RSS beside live blocks), both in MiB, of a program that marks steps and reports its RSS.
    The second is what it has at its end under glibc, told to give each free block back at once, less what is live
    then: its code, its small objects, no large block."""
    with tempfile.TemporaryDirectory() as d:
        lean = (f"traced={args.build}/bench/fit_trace.so,FIT_TRACE={d}/trace,"
                "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=65536:glibc.malloc.trim_threshold=131072")
        runs = compare(args, cmd, rounds=1, allocators="", variants=[lean])
        peak, marks = live_bytes(d + "/trace")
        return peak / 2**20, runs.median("traced", "rss_mib") - marks[-1] / 2**20


def round_up(mib, unit=HUGE_MIB):
    return math.ceil(mib / unit) * unit
