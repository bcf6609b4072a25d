"""Per-step meter of the workloads: wall time, minor faults of application threads (those of an
allocator's helper threads apart), CPU time, RSS and huge pages of this process, and of its children
when asked. It marks each boundary for faultstat, the first and the last for bench/fit's tracer.

    m = Meter("name", arguments())
    for i in m:
        ...
    m.report()                       # last line: SUMMARY {json}

Variables: METER_DECLARE=1 declares each step to faultless; METER_TRACE=1 tells the tracer of each step."""
import argparse
import array
import ctypes
import json
import os
import re
import resource
import time

import step

TICK = os.sysconf("SC_CLK_TCK")
COLUMNS = 5     # of a step: see Meter._sample


def arguments(steps=12, **extra):
    """Options common to all workloads; a keyword adds --keyword with that default."""
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=steps)
    p.add_argument("--warmup", type=int, default=-1,
                   help="steps left out of the summary (default: a third, at least 3)")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--quiet", action="store_true", help="summary line only")
    for name, default in extra.items():
        option = "--" + name.replace("_", "-")
        if isinstance(default, bool):
            p.add_argument(option, action="store_true")
        else:
            p.add_argument(option, type=type(default), default=default)
    a = p.parse_args()
    if a.warmup < 0:
        a.warmup = max(3, a.steps // 3)
    a.warmup = max(0, min(a.warmup, a.steps - 1))
    return a


def _read_kib(path, field):
    try:
        with open(path) as f:
            found = re.search(rf"^{field}:\s+(\d+) kB", f.read(), re.M)
        return int(found[1]) / 1024 if found else 0.0
    except OSError:
        return 0.0


def status_mib(field, pid="self"):
    return _read_kib(f"/proc/{pid}/status", field)


def anon_huge_mib(pid="self"):
    return _read_kib(f"/proc/{pid}/smaps_rollup", "AnonHugePages")


def _stat(path):
    """(name, fields after it) of a stat file; None when the thread has ended."""
    try:
        with open(path) as f:
            text = f.read()
    except OSError:
        return None
    return text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()


def helper_faults():
    """Minor faults of living threads named fl-*, and of the io_uring workers that the kernel made for
    one of them (iou-wrk-TID): what an allocator populates off the program's path."""
    found = {tid: _stat(f"/proc/self/task/{tid}/stat") for tid in os.listdir("/proc/self/task")}
    threads = {tid: f for tid, f in found.items() if f}
    ours = {tid for tid, (name, _) in threads.items() if name.startswith("fl-")}
    return sum(int(fields[7]) for tid, (name, fields) in threads.items()
               if tid in ours or (name.startswith("iou-wrk-") and name[8:] in ours))


def mark_trace():
    """Tell bench/fit's tracer, when it is preloaded, that the steps begin or have ended."""
    if "fit_trace" in os.environ.get("LD_PRELOAD", ""):
        ctypes.CDLL(None).fit_mark()


class Declared:
    """A step that is declared to faultless, if that is asked for."""
    of = ctypes.CDLL(None) if os.environ.get("METER_DECLARE") else None

    def __enter__(self):
        if self.of and self.of.fl_step_begin(None) != 0:
            raise OSError("fl_step_begin failed")

    def __exit__(self, *_):
        if self.of:
            self.of.fl_step_end(None)


def children():
    out = []
    for tid in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{tid}/children") as f:
                out += f.read().split()
        except OSError:
            pass
    return out


def child_usage():
    """Minor faults, user and system seconds of the living children."""
    usage = [0, 0.0, 0.0]
    for pid in children():
        found = _stat(f"/proc/{pid}/stat")
        if found:
            usage[0] += int(found[1][7])
            usage[1] += int(found[1][11]) / TICK
            usage[2] += int(found[1][12]) / TICK
    return usage


class Meter:
    def __init__(self, name, args, with_children=False):
        self.name, self.a, self.with_children = name, args, with_children
        self.cells = array.array("d", [0.0] * (COLUMNS * args.steps))   # a list that grows would fault

    @property
    def rows(self):
        return [self.cells[i:i + COLUMNS] for i in range(0, len(self.cells), COLUMNS)]

    def _sample(self):
        """Wall s, application faults, user s, system s, helper faults; all since the start."""
        now = time.perf_counter()
        r = resource.getrusage(resource.RUSAGE_SELF)
        helper = helper_faults()
        row = [now, r.ru_minflt - helper, r.ru_utime, r.ru_stime, helper]
        if self.with_children:
            for i, value in enumerate(child_usage()):
                row[i + 1] += value
        return row

    def __iter__(self):
        mark_trace()
        step.mark()
        before = self._sample()
        for i in range(self.a.steps):
            with Declared():
                yield i
            after = self._sample()
            step.mark()
            if os.environ.get("METER_TRACE"):
                mark_trace()
            for k in range(COLUMNS):
                self.cells[i * COLUMNS + k] = after[k] - before[k]
            before = self._sample()         # the pause at the mark belongs to no step

    def report(self):
        mark_trace()
        pids = ["self"] + (children() if self.with_children else [])
        if not self.a.quiet:
            for i, r in enumerate(self.rows):
                print(f"step {i:3d}  wall_ms {r[0] * 1e3:9.2f}  minflt {r[1]:8.0f}  "
                      f"user_ms {r[2] * 1e3:8.1f}  sys_ms {r[3] * 1e3:8.1f}")
        steady = self.rows[self.a.warmup:]
        median = lambda k: sorted(r[k] for r in steady)[len(steady) // 2]
        mean = lambda k: sum(r[k] for r in steady) / len(steady)
        print("SUMMARY " + json.dumps({
            "name": self.name, "steps": len(steady),
            "wall_ms": round(median(0) * 1e3, 2), "wall_mean_ms": round(mean(0) * 1e3, 2),
            "wall_min_ms": round(min(r[0] for r in steady) * 1e3, 2),
            "minflt": median(1), "minflt_mean": round(mean(1), 1),
            "minflt_max": max(r[1] for r in steady), "minflt_helper_mean": round(mean(4), 1),
            "user_ms": round(mean(2) * 1e3, 1), "sys_ms": round(mean(3) * 1e3, 1),
            "sys_share": round(mean(3) / max(1e-9, mean(2) + mean(3)), 4),
            "hwm_mib": round(sum(status_mib("VmHWM", p) for p in pids)),
            "rss_mib": round(sum(status_mib("VmRSS", p) for p in pids), 2),
            "ahp_end_mib": round(sum(anon_huge_mib(p) for p in pids)),
            "first_steps_ms": [round(r[0] * 1e3) for r in self.rows[:3]]}), flush=True)
