"""polars: a join, an aggregation and a sort over two million rows. Most of its memory does not come
from malloc, so what is preloaded does not serve it.   polars_query.py --steps 9"""
import os

from meter import Meter, arguments

a = arguments(steps=9, rows=2000000)
os.environ.setdefault("POLARS_MAX_THREADS", str(a.threads))     # read at import
import numpy as np      # noqa: E402
import polars as pl     # noqa: E402

draw = np.random.default_rng(0)
t = pl.DataFrame({"k": draw.integers(0, 50000, a.rows), "v": draw.standard_normal(a.rows)})
names = pl.DataFrame({"k": np.arange(50000), "w": draw.standard_normal(50000)})
m = Meter("polars", a)
for _ in m:
    joined = t.join(names, on="k").with_columns((pl.col("v") * pl.col("w")).alias("p"))
    joined.group_by("k").agg(pl.col("p").sum()).sort("p").head(10)
    joined.sort("v").head(10)
m.report()
