import sys

import dask
from dask.distributed import Client, LocalCluster
from worker import work

if __name__ == "__main__":
    if sys.argv[1:]:
        dask.config.set({"distributed.nanny.pre-spawn-environ.LD_PRELOAD": sys.argv[1]})
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        print(client.submit(work).result())
