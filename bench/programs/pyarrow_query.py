"""pyarrow: a column computed, a filter, an aggregation and a sort over two million rows. Its memory
comes from a pool of its own; ARROW_DEFAULT_MEMORY_POOL names another.   pyarrow_query.py --steps 9"""
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from meter import Meter, arguments

a = arguments(steps=9, rows=2000000)
pa.set_cpu_count(a.threads)
draw = np.random.default_rng(0)
t = pa.table({"k": draw.integers(0, 50000, a.rows), "v": draw.standard_normal(a.rows)})
m = Meter("pyarrow", a)
for _ in m:
    priced = t.append_column("p", pc.add(pc.multiply(t["v"], 2.0), 1.0))
    half = priced.filter(pc.greater(priced["p"], 1.0))
    half.group_by("k").aggregate([("p", "sum")]).slice(0, 10)
    half.sort_by("v").slice(0, 10)
m.report()
