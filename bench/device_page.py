"""What tools/device wrote, as Markdown. A file of it is lines of JSON: see docs/internals/device.md."""
import json
import statistics

# What a device is to settle: the number, the measure, against what, the bar.
ROWS = [
    ("B1", "copies to the device from a mirror, 4 KiB to 256 MiB", "cuMemHostAlloc; pageable",
     "at least 0.99 x and 2.5 x from 64 MiB on"),
    ("B2", "up to 8 GiB reserved, populated and registered; registering alone, huge pages",
     "cuMemHostAlloc; base pages", "at most 0.25 x; 0.5 x"),
    ("B3", "pool, alloc and free", "cuMemAllocAsync; cuMemAlloc",
     "at most 60 ns; 20 x and 100 x faster"),
    ("B5", "1,000 inputs of 16 KiB, 256 of 256 KiB, 32 of 8 MiB in one push", "each by itself",
     "at least 5 x, 1.5 x, 1 x; the call at most 5 us"),
    ("B7", "slowest pool call beside a 50 ms kernel", "cuMemFree",
     "at most 10 us; no implicit synchronisation"),
    ("B8", "fork with a mirror of up to 8 GiB", "registered without", "at most 5 ms"),
    ("B9", "slowest mmap of another thread while as much is registered", "cuMemHostAlloc",
     "at most 100 ms"),
    ("B10", "a launch-bound PyTorch training step, auto_growth: time; memory",
     "PyTorch's own allocator", "at most 1.01 x; 0.95 x"),
    ("B12", "batches of images and 20 ragged tensors by the Stager: images a second",
     "tensor by tensor; pin_memory and a prefetch stream; one packed buffer", ""),
]
HEAD = ["#", "measure", "ours", "against", "bar"]


def table(head, lines):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
            *("| " + " | ".join(map(cell, line)) + " |" for line in lines), ""]


def cell(value):
    text = "" if value is None else str(value)
    if isinstance(value, float):
        text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("|", "\\|").replace("\n", " ")


def read(path):
    """The lines that are whole; what a killed process left of one is no line of JSON."""
    found = []
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
    return [r for r in found if isinstance(r, dict) and "kind" in r]


def measures(records):
    """Each with the bars that follow it."""
    lines = []
    for r in records:
        if r["kind"] == "measure":
            theirs = f"{r['against']} {cell(r['theirs'])} {r['unit']}" if "theirs" in r else ""
            lines.append([r["number"], r["measure"], f"{cell(r['ours'])} {r['unit']}", theirs, ""])
        elif r["kind"] == "bar" and lines:
            kind, limit = next((k, r[k]) for k in ("at_most", "at_least") if k in r)
            met = "met" if r["met"] else "**missed**"
            said = f"{r['of']} {cell(r['value'])}, {kind.replace('_', ' ')} {cell(limit)}: {met}"
            lines[-1][4] += ("; " if lines[-1][4] else "") + said
    return lines


def open_rows(measured, why):
    """The rows that no measure has, and why."""
    return [[number, measure, f"not measured: {why}", against, bar]
            for number, measure, against, bar in ROWS if number not in measured]


def sections(records):
    lines = []
    for begin in (r for r in records if r["kind"] == "begin"):
        end = next((r for r in records
                    if r["kind"] == "end" and r["section"] == begin["section"]), None)
        if end is None:
            lines.append([begin["section"], "**lost**", "", "", "the run ended in it"])
            continue
        bad = end["outcome"] not in ("ok", "skipped")
        outcome = f"**{end['outcome']}**" if bad else end["outcome"]
        said = (end["text"].strip().splitlines() or [""])[-1]
        lines.append([end["section"], outcome, end["seconds"], end["results"], said])
    return table(["section", "", "s", "results", "it said"], lines)


def in_capture(answers):
    """A probe's answers by who asked: the driver's code, and whether the capture went on."""
    said = {who: f"{code}{', capture ended' if status == 2 else ''}"
            for who, (code, _, status, _) in answers.items()}
    if len(set(said.values())) == 1:
        return f"each way {next(iter(said.values()))}"
    bad = [who for who, text in said.items() if text != "0"]
    return f"{said[bad[0]]}: {', '.join(bad)}; else 0"


def fields(fact):
    """What a probe found, in its own words."""
    own = {k: v for k, v in fact.items() if k not in ("kind", "section", "name") and v != ""}
    if own and all(isinstance(v, list) and len(v) == 4 for v in own.values()):
        return in_capture(own)
    return ", ".join(f"{k} {json.dumps(v) if isinstance(v, list) else cell(v)}"
                     for k, v in own.items())


def alike(found):
    """One line for all of one kind with one answer."""
    names = {}
    for r in found:
        kind, _, name = r["name"].rpartition("/")
        names.setdefault((kind, fields(r)), []).append(name)
    return [[f"{kind}/" * bool(kind) + ", ".join(of), answer]
            for (kind, answer), of in names.items()]


def facts(records):
    lines = []
    for section in ("probes", "torch", "staging", "sanitizer"):
        found = [r for r in records if r["kind"] == "fact" and r["section"] == section]
        if section == "probes": # the symbols that are as they should be are one line
            there = [r for r in found if r["name"].startswith("symbol/") and r.get("found")]
            found = [r for r in found if r not in there]
            lines += [["symbols", f"{len(there)} found by name and version"]] if there else []
            parts = [r for r in found if r["name"].startswith("device/")]
            found = [r for r in found if r not in parts]
            named = ", ".join(f"{r['name'][7:]} {r.get('value')}" for r in parts)
            lines += [["attributes of the device", named]] if parts else []
        lines += alike(found)
    return table(["what was asked", "answer"], lines) if lines else []


def tests(records):
    found = [r for r in records if r["kind"] == "test"]
    passed = sum(r["outcome"] == "passed" for r in found)
    bad = [f"; **{r['name']} {r['outcome']}**: {cell(r['text'])}" for r in found
           if r["outcome"] not in ("passed", "skipped")]
    return [f"Tests: {passed} of {len(found)} passed" + "".join(bad) + ".", ""] if found else []


def contend(records):
    found = [r for r in records if r["kind"] == "fact" and r["section"] == "contend"]
    what = {0: "pairs", 1: "its own blocks", 2: "any thread's blocks"}
    lines = []
    for path, threads in sorted({(r["path"], r["threads"]) for r in found}):
        def median(name):
            of = [r["cpu_ns"] for r in found
                  if (r["path"], r["threads"], r["name"]) == (path, threads, name)]
            return float(statistics.median(of)) if of else None
        lines.append([what[path], threads, median("glibc"), median("faultless")])
    return ["Many cores, processor time of a request and a free in ns:", "",
            *table(["what is freed", "threads", "glibc", "faultless"], lines)] if found else []


def page(path):
    """`path` None: nothing was run."""
    if path is None:
        return "\n".join(table(HEAD, open_rows((), "no device"))) + "\n"
    records = read(path)
    run = next((r for r in records if r["kind"] == "run"), {})
    lines = []
    if run.get("smoke", True):
        lines += ["**A smoke run: the figures mean nothing.**", ""]
    memory = float(run.get("memory_kib", 0)) / 2**20
    lines += [f"From `{run.get('command')}`, commit {run.get('commit')}, {run.get('date')}.",
              f"Machine: {run.get('gpu') or 'no nvidia-smi'}; driver {run.get('driver')}; "
              f"{run.get('cpu')}, {run.get('cores')} cores, {memory:.0f} GiB, "
              f"{run.get('kernel')}.", ""]
    lines += sections(records) + tests(records)
    measured = measures(records)
    missing = open_rows({m[0] for m in measured}, "its section gave no result")
    lines += table(HEAD, measured + missing)
    lines += contend(records) + facts(records)
    return "\n".join(lines) + "\n"
