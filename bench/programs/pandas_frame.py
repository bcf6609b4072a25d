"""pandas: a join, an aggregation, a sort and a rolling mean over a million rows.   pandas_frame.py --steps 9"""
import numpy as np
import pandas as pd

from meter import Meter, arguments

a = arguments(steps=9, rows=1000000)
draw = np.random.default_rng(0)
t = pd.DataFrame({"k": draw.integers(0, 50000, a.rows), "v": draw.standard_normal(a.rows)})
names = pd.DataFrame({"k": np.arange(50000), "w": draw.standard_normal(50000)})
m = Meter("pandas", a)
for _ in m:
    joined = t.merge(names, on="k")
    joined["p"] = joined["v"] * joined["w"]
    joined.groupby("k")["p"].sum().sort_values().head(10)
    joined.sort_values("v")["p"].rolling(100).mean().max()
m.report()
