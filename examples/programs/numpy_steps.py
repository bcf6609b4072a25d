"""A loop of NumPy arrays of 64 MB; prints the page faults of each step."""
import resource

import numpy as np

values = np.random.default_rng(1).random(8_000_000)
for step in range(8):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    roots = np.sqrt(values) * 2 + values
    roots.sort()
    print("step", step, "faults", resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
