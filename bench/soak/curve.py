"""The soak's document: docs/results/soak.svg, drawn by hand, and docs/results/soak.md, both from a summary of bench/soak/run."""
import math

import markdown

COLOURS = {"mix": "#0b5fa5", "numpy": "#c2410c", "torch": "#15803d", "redis": "#7e22ce"}
WIDTH, LEFT, RIGHT, HIGH, GAP, TOP = 880, 64, 92, 170, 54, 34
MOST = 130          # points a line; longer runs are thinned to the largest of each few epochs

# title, logarithmic?, the lines of each process: (figure, is it the thin one)
PANELS = [
    ("RSS, MiB: the peak of each epoch (thick), after its pause (thin)", False, [("peak_mib", False), ("floor_mib", True)]),
    ("Minor faults an epoch of the program's own threads: in the steady steps (thick), in all but forks (thin)", True,
     [("steady_faults", False), ("faults", True)]),
    ("Time of a steady step, ms", True, [("step_ms", False)]),
    ("Maps of the process", False, [("vmas", False)]),
]


def thinned(points):
    each = -(-len(points) // MOST)
    return [max(points[i:i + each], key=lambda p: p[1]) for i in range(0, len(points), each)]


def ticks(top, logarithmic):
    if logarithmic:
        return [0] + [10 ** k for k in range(math.ceil(math.log10(top)) + 1)]
    unit = 10 ** math.floor(math.log10(top))
    step = next(m * unit for m in (0.2, 0.5, 1, 2) if top / (m * unit) <= 6)
    return [round(step * i, 6) for i in range(int(top / step + 0.999) + 1)]


def figure(n):
    return f"{n:,.0f}" if n >= 1 or n == 0 else f"{n:g}"


def panel(top, title, logarithmic, lines, epochs, minutes):
    series = {(name, f, thin): [(e["end_s"] / 60, e[f]) for e in es if e.get(f) is not None]
              for name, es in epochs.items() for f, thin in lines}
    largest = max((v for points in series.values() for _, v in points), default=1) or 1
    marks = ticks(max(largest, 1), logarithmic)
    scale = (lambda v: math.log10(1 + v)) if logarithmic else (lambda v: v)
    x = lambda t: LEFT + t / minutes * (WIDTH - LEFT - RIGHT)
    y = lambda v: top + HIGH - scale(v) / scale(marks[-1]) * HIGH
    out = [f'<text x="{LEFT}" y="{top - 10}" class="t">{title}</text>']
    for m in marks:
        out.append(f'<path d="M{LEFT} {y(m):.1f}H{WIDTH - RIGHT}" class="g"/>'
                   f'<text x="{LEFT - 6}" y="{y(m) + 4:.1f}" class="n">{figure(m)}</text>')
    ends = []
    for (name, _, thin), points in series.items():
        if not points:
            continue
        line = "".join(f"{'L' if i else 'M'}{x(t):.1f} {y(v):.1f}" for i, (t, v) in enumerate(thinned(points)))
        style = ' stroke-width="1" stroke-dasharray="3 2"' if thin else ' stroke-width="1.8"'
        out.append(f'<path d="{line}" fill="none" stroke="{COLOURS.get(name, "#444")}"{style}/>')
        if not thin:
            ends.append([y(points[-1][1]), name])
    lowest = -math.inf
    for at, name in sorted(ends):                       # names beside the lines' ends, none over another
        lowest = max(at, lowest + 13)
        out.append(f'<text x="{WIDTH - RIGHT + 6}" y="{lowest + 4:.1f}" fill="{COLOURS.get(name, "#444")}">{name}</text>')
    step = next(s for s in (0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 240, 480, 1e9) if minutes / s <= 10)
    last = int(minutes / step)
    return out + [f'<text x="{x(i * step):.1f}" y="{top + HIGH + 15}" class="m">{i * step:g}{" minutes" if i == last else ""}</text>'
                  for i in range(last + 1)]


def svg(summary):
    epochs = summary["epochs"]
    minutes = max(e["end_s"] for es in epochs.values() for e in es) / 60
    height = TOP + len(PANELS) * (HIGH + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
           "<style>.t{font-size:13px;font-weight:bold;fill:#222}.g{stroke:#ddd}.n{text-anchor:end;fill:#555}"
           ".m{text-anchor:middle;fill:#555}</style>", '<rect width="100%" height="100%" fill="#fff"/>']
    for i, (title, logarithmic, lines) in enumerate(PANELS):
        out += panel(TOP + i * (HIGH + GAP), title, logarithmic, lines, epochs, minutes)
    return "\n".join(out + ["</svg>", ""])


def number(v):
    return f"{v:,.0f}" if abs(v) >= 100 else f"{v:.1f}" if abs(v) >= 1 else f"{v:.2f}".rstrip("0").rstrip(".")


def verdict_table(summary):
    out = ["| process | figure of an epoch | second quarter | second half | drift, 95 % interval | allowed | |",
           "|---|---|---|---|---|---|---|"]
    for name, verdicts in summary["verdicts"].items():
        for v in verdicts:
            if not any((v["quarter"], v["half"], v["drift"])):
                continue                                # nothing of the kind ever happened
            word = "**grows**" if v["grows"] and v["judged"] else "steady" if v["judged"] else "not judged"
            text = v["text"] + (", " + v["unit"] if v["unit"] else "")
            out.append(f"| {name} | {text} | {number(v['quarter'])} | {number(v['half'])} | {number(v['drift'])} "
                       f"({number(v['drift_low'])} to {number(v['drift_high'])}) | {number(v['allowed'])} | {word} |")
    return out


def document(summary):
    m, epochs, brief = summary["machine"], summary["epochs"], summary["brief"]
    errors = sum(es[-1]["errors"] for es in epochs.values() if es)
    forks = sum(e.get("forks", 0) for es in epochs.values() for e in es)
    threads = sum(e.get("threads_started", 0) for es in epochs.values() for e in es)
    judged = [v for vs in summary["verdicts"].values() for v in vs if v["judged"]]
    out = ["# Soak", "",
           f"{summary['minutes']:.0f} minutes of mixed work under the library, all at the same time on {m['cores']} cores: does memory "
           "grow, do faults?", "",
           f"    {summary['command']}", "    bench/soak/run --report build/soak      # writes this page from it", "",
           f"Machine: {m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, Linux {m['kernel']}, THP {m['thp']}. "
           f"Preloaded: {summary['library']}; FAULTLESS_DECAY_MS={summary['decay_ms']}, so that each epoch's pause is longer than the decay.",
           "", "![Memory and faults over time](soak.svg)", "",
           f"{sum(not v['grows'] for v in judged)} of {len(judged)} figures do not grow; {errors} blocks, values or results were wrong; "
           f"{forks} children of a fork verified what they inherited, {threads} threads came and went, {brief['runs']} short programs ran "
           f"beside, {brief['failed']} of them failed.", ""]
    out += ["- Failed: " + text.replace("\n", " ").strip() for text in summary["failures"]] + ["- Left out: " + text for text in summary["left_out"]]
    out += ["" if summary["failures"] or summary["left_out"] else None, "## What ran", "",
            "| process | epochs | what | large requests | of these populated | populated at most, MiB |", "|---|---|---|---|---|---|"]
    for name, command in summary["commands"].items():
        s = summary["stats"].get(name) or {}
        out.append(f"| {name} | {len(epochs[name])} | `{command}` | {s.get('requests', 0):,} | {s.get('stalls', 0):,} | "
                   f"{s.get('populated_peak_bytes', 0) / 2**20:,.0f} |")
    out += ["", "What each does in an epoch is fixed, and all that it writes is checked: `bench/soak/mix.h`, `bench/soak/paced.py`, "
            "`bench/soak/redis_load.py`. VmHWM is reset at each epoch's start, so the peak is the kernel's and not a sample's. Faults are "
            "those of the program's own threads.", "", "## How it is judged", "",
            "The first quarter of the epochs is warm-up. A figure grows when the median of the second half of all epochs is above that of the "
            "second quarter by more than is allowed and a Mann-Whitney test gives less than one in a hundred for chance; or when the slope "
            "of the last three quarters by Theil and Sen, times their duration (the drift), is more than is allowed and its 95 % interval "
            "lies above 0. `bench/soak/judge.py` has what is allowed. That it can fail: `bench/soak/run --spoil memory` loses 1 MiB an "
            "epoch, other kinds are in `bench/soak/spoil.c`, and `tests/soak/test_soak_catches` runs them all.", ""]
    lines = out + verdict_table(summary)
    return markdown.folded("\n".join(line for line in lines if line is not None))


def write(summary, folder):
    for name, text in (("soak.svg", svg(summary)), ("soak.md", document(summary))):
        with open(f"{folder}/{name}", "w") as f:
            f.write(text)
        print(f"soak: {folder}/{name}: {len(text.encode()):,} bytes")
