"""What the commands of bench/ that print Markdown share: tables, the machine, one program's figures."""
import re
import textwrap

COLUMNS = [("step_ms", "step ms", 1), ("step_faults", "faults a step", None), ("step_faults_mean", "mean", 1),
           ("step_sys_ms", "sys ms a step", 1), ("first_step_ms", "first step ms", 0),
           ("peak_above_base_mib", "peak above base MiB", 0), ("huge_pct", "huge %", 0)]


def folded(text):
    """The page with lines of at most 100 columns, but for tables and commands."""
    def fold(line):
        if line.startswith(("|", "    ")):
            return [line]
        return textwrap.wrap(line, 100, break_long_words=False, break_on_hyphens=False,
                             subsequent_indent="  " if line.startswith("- ") else "") or [""]
    return "".join(part + "\n" for line in text.splitlines() for part in fold(line))


def number(value, decimals):
    """Decimals None: as many as it has."""
    if value is None or isinstance(value, str):
        return value or "never"
    return f"{value:g}" if decimals is None else f"{value:.{decimals}f}"


def table(head, lines):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(line) + " |" for line in lines)]


def command(run):
    """Paths as they are in the tree; a program's own one, wherever it was built."""
    def path(word):
        word = re.sub(r"^.*/bench/(workloads|programs)/", r"bench/\1/", word)
        word = re.sub(r"^/.*/build/bench-venv/", "build/bench-venv/", word)
        return re.sub(r"^/.*/bench/", "build/release/bench/", word)
    return "`" + " ".join(map(path, run["command"])) + "`"


def machine(runs):
    m = runs["machine"]
    names = ", ".join(dict.fromkeys(a["version"] for a in runs["allocators"] if a.get("present")))
    return [f"Machine: {m['cpu']}, {m['cores']} cores, {m['nodes']} node, {m['memory_bytes'] / 2**30:.1f} GiB, "
            f"Linux {m['kernel']}, THP {m['thp']}.", f"Allocators: {names}.", ""]


def workload(name, runs):
    rows = [a for a in runs["allocators"] if a.get("present")]
    lines = [[a["name"], *(number(a["median"][key], d) for key, _, d in COLUMNS),
              f"{a['median']['step_ms'] / rows[0]['median']['step_ms']:.2f}"] for a in rows]
    return ["", f"### {name}", "", f"{command(runs)}, {runs['rounds']} interleaved rounds, medians", "",
            *table(["allocator", *(c[1] for c in COLUMNS), f"step, relative to {rows[0]['name']}"], lines)]
