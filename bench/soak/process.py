"""What the kernel says of a process: memory, faults, threads, maps and descriptors; for the soak's programs."""
import os, re, time

HELPERS = ("fl-", "iou-")     # threads that work for the allocator and not for the program


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def mib(text, field):
    found = re.search(rf"^{field}:\s+(\d+) kB", text, re.M)
    return int(found[1]) / 1024 if found else 0.0


def count(path):
    try:
        return len(os.listdir(path))
    except OSError:
        return 0


def _stat(path):
    """(name, minor faults) of a stat file; None when the thread has ended."""
    text = read(path)
    if not text:
        return None
    return text[text.index("(") + 1:text.rindex(")")], int(text[text.rindex(")") + 2:].split()[7])


class Process:
    def __init__(self, pid="self"):
        self.dir = f"/proc/{pid}"
        self.helpers = {}       # thread id: its last figure; the process's figure keeps what ended threads had

    def faults(self):
        """(minor faults of the program's threads, of helpers) since the process began."""
        for tid in os.listdir(self.dir + "/task"):
            found = _stat(f"{self.dir}/task/{tid}/stat")
            if found and found[0].startswith(HELPERS):
                self.helpers[tid] = found[1]
        helper = sum(self.helpers.values())
        return _stat(self.dir + "/stat")[1] - helper, helper

    def reset_peak(self):
        with open(self.dir + "/clear_refs", "w") as f:
            f.write("5")

    def peak_mib(self):
        return mib(read(self.dir + "/status"), "VmHWM")

    def rss_mib(self):
        return mib(read(self.dir + "/status"), "VmRSS")

    def sample(self):
        """One row; None when the process has ended. A helper may have a table of descriptors of its own."""
        try:
            app, helper = self.faults()
            status = read(self.dir + "/status")
            tables = [count(f"{self.dir}/task/{tid}/fd") for tid in self.helpers]
            row = {"rss_mib": mib(status, "VmRSS"), "pte_mib": mib(status, "VmPTE"),
                   "anon_huge_mib": mib(read(self.dir + "/smaps_rollup"), "AnonHugePages"),
                   "app_faults": app, "helper_faults": helper, "threads": count(self.dir + "/task"),
                   "vmas": read(self.dir + "/maps").count("\n"), "fds": count(self.dir + "/fd"), "helper_fds": sum(tables)}
            return row if row["threads"] and row["vmas"] else None
        except (OSError, TypeError):
            return None


class Epoch:
    """Figures of one epoch of `process`, measured from outside or by itself: leave() returns them."""
    def __init__(self, process, number):
        self.process, self.number, self.steps = process, number, []
        process.reset_peak()
        self.start, self.before, self.apart = time.monotonic(), process.faults()[0], 0

    def step(self, began, faults_before):
        self.steps.append((time.monotonic() - began, self.process.faults()[0] - faults_before))

    def leave(self, errors):
        """After the idle pause. The second half of the steps counts as steady."""
        steady = self.steps[len(self.steps) // 2:]
        wall = sorted(s[0] for s in steady)
        return {"epoch": self.number, "seconds": round(time.monotonic() - self.start, 3),
                "peak_mib": round(self.process.peak_mib(), 2), "floor_mib": round(self.process.rss_mib(), 2),
                "step_ms": round(wall[len(wall) // 2] * 1e3, 2), "steady_faults": sum(s[1] for s in steady),
                "forking_faults": self.apart, "faults": self.process.faults()[0] - self.before - self.apart, "errors": errors}
