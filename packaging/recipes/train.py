"""What the recipes run: ten steps of large buffers, and a line that says whether the library served them."""
import os

import faultless

for _ in range(10):
    with faultless.step():
        buffers = [bytearray(n << 20) for n in (9, 3, 17, 5)]
        del buffers
rank = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("SLURM_PROCID") or "0"
print("rank %s: %s" % (rank, "served" if faultless.active() else "not served"), flush=True)
