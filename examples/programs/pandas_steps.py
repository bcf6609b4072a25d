"""A loop of pandas: two million rows are extended, filtered, sorted and grouped; prints the page faults of each step."""
import resource

import numpy as np
import pandas as pd

draw = np.random.default_rng(1)
frame = pd.DataFrame(draw.random((2_000_000, 8)), columns=list("abcdefgh"))
frame["key"] = draw.integers(0, 1000, len(frame))
for step in range(12):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    wide = frame.assign(s=frame.a + frame.b * 2, t=frame.c.clip(0.1, 0.9))
    wide.query("s > 0.5").sort_values("t").groupby("key").mean()
    print("step", step, "faults", resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
