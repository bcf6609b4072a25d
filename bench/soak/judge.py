"""Does a figure grow from epoch to epoch? For the soak's verdict.

The first quarter of the epochs is warm-up. Of the rest, a figure grows when one of these is sure and more than is allowed:
  level   the median of the second half of all epochs is above that of the second quarter by more than the allowed, and a
          Mann-Whitney test says that it is no chance (z > 2.33, one in a hundred)
  drift   the slope over the last three quarters by Theil and Sen (the median of the slopes between all pairs), times their
          duration, is more than the allowed, and so is no part of a slope that might be 0: the lower end of its 95 % interval
          is above 0
What is allowed is a share of the second quarter's median, but at least so much absolutely."""
import math, statistics

FEWEST = 12         # epochs; with fewer nothing can be said, and that is a failure

# figure: (text, unit, share allowed, at least allowed, judged)
FIGURES = {
    "peak_mib": ("peak RSS", "MiB", 0.03, 16, True),
    "floor_mib": ("RSS after the pause", "MiB", 0.03, 8, True),
    "steady_faults": ("faults of its threads in the steady steps", "", 0.10, 64, True),
    "faults": ("faults of its threads, without those beside a fork's child", "", 0.15, 512, True),
    "forking_faults": ("faults beside a fork's child", "", 0.50, 50000, True),
    "helper_faults": ("faults of fl- and iou- threads", "", 0.15, 512, True),
    "pte_mib": ("page tables", "MiB", 0.10, 1, True),
    "vmas": ("maps", "", 0.10, 32, True),
    "fds": ("descriptors", "", 0, 4, True),
    "helper_fds": ("descriptors of fl- and iou- threads", "", 0, 4, True),
    "threads": ("threads", "", 0, 8, True),
    "step_ms": ("time of a steady step", "ms", 0.10, 0, False),
}


def theil_sen(x, y):
    """(slope, lower and upper end of its 95 % interval)."""
    slopes = sorted((y[j] - y[i]) / (x[j] - x[i]) for i in range(len(x)) for j in range(i + 1, len(x)) if x[j] != x[i])
    n = len(x)
    half = 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18) / 2
    middle = (len(slopes) - 1) / 2
    low, high = max(0, math.floor(middle - half)), min(len(slopes) - 1, math.ceil(middle + half))
    return statistics.median(slopes), slopes[low], slopes[high]


def mann_whitney(before, after):
    """How sure `after` is larger: the z of the rank sum, ties taken into account."""
    both = sorted(before + after)
    n, m, total = len(before), len(after), len(before) + len(after)
    rank, ties, i = {}, 0, 0
    while i < total:
        j = i
        while j < total and both[j] == both[i]:
            j += 1
        rank[both[i]] = (i + 1 + j) / 2
        ties += (j - i) ** 3 - (j - i)
        i = j
    u = sum(rank[v] for v in after) - m * (m + 1) / 2
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    return (u - n * m / 2) / math.sqrt(variance) if variance > 0 else 0.0


def judge(figure, times, values):
    """One verdict. `times` in seconds and `values`, one each an epoch, oldest first."""
    text, unit, share, least, judged = FIGURES[figure]
    n = len(values)
    quarter, half = values[n // 4:n // 2], values[n // 2:]
    level = statistics.median(quarter)
    allowed = max(share * level, least)
    x, y = times[n // 4:], values[n // 4:]
    span = x[-1] - x[0]
    drift, low, high = (v * span for v in theil_sen(x, y))
    rise, z = statistics.median(half) - level, mann_whitney(quarter, half)
    grows = (rise > allowed and z > 2.33) or (drift > allowed and low > 0)
    return {"figure": figure, "text": text, "unit": unit, "quarter": level, "half": level + rise, "z": round(z, 2),
            "drift": drift, "drift_low": low, "drift_high": high, "allowed": allowed, "judged": judged, "grows": grows}


def judge_all(epochs):
    """Verdicts of one process: `epochs` are dictionaries with `end_s` and figures."""
    if len(epochs) < FEWEST:
        return []
    times = [e["end_s"] for e in epochs]
    return [judge(f, times, [e[f] for e in epochs]) for f in FIGURES if all(e.get(f) is not None for e in epochs)]
