"""Many small objects: a dictionary of 400,000 entries, a third of them read and a seventh replaced, three times. With
`blocks`: 250,000 byte strings of 600 to 4,000 bytes, too long for Python's own arenas, a third replaced, twice. With `none`:
nothing. The last line is its peak RSS in KiB and what of its memory is in huge pages, in KiB.
python3 objects.py [small|blocks|none]"""
import random
import re
import sys

ENTRIES, BLOCKS = 400_000, 250_000


def small():
    d = {f"key{i}": (i, str(i), [i, i + 1]) for i in range(ENTRIES)}
    for _ in range(3):
        for key in list(d)[::3]:
            len(d[key][1])
        for i in range(0, ENTRIES, 7):
            d[f"key{i}"] = (i, str(i) * 3, [i])
    return d


def blocks():
    some = random.Random(1)
    d = {i: bytes(some.randrange(600, 4000)) for i in range(BLOCKS)}
    for _ in range(2):
        for i in range(0, BLOCKS, 3):
            d[i] = bytes(some.randrange(600, 4000))
    return d


def kib(path, key):
    with open(path) as f:
        return re.search(key + r":\s+(\d+)", f.read())[1]


held = {"small": small, "blocks": blocks, "none": dict}[(sys.argv[1:] or ["small"])[0]]()
print(kib("/proc/self/status", "VmHWM"), kib("/proc/self/smaps_rollup", "AnonHugePages"))
