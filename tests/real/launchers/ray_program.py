import sys

import ray
from worker import work

env = {"LD_PRELOAD": sys.argv[1]} if sys.argv[1:] else {}
ray.init(num_cpus=1, include_dashboard=False, runtime_env={"env_vars": env}, log_to_driver=False)
print(ray.get(ray.remote(work).remote()))
ray.shutdown()
