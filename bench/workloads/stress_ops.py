"""Operations of stress-ng's malloc stressor: it asks for much, touches two words of each block and frees at random.

  stress_ops.py [--seconds N] [--mib N]

The last line is `SUMMARY {json}`: ops."""
import argparse
import json
import re
import subprocess
import sys

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--seconds", type=int, default=10)
p.add_argument("--mib", type=int, default=384)
args = p.parse_args()
said = subprocess.run(["stress-ng", "--malloc", "2", "--malloc-bytes", f"{args.mib}M", "-t", f"{args.seconds}s",
                       "--metrics-brief"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
found = re.findall(r"\] malloc\s+(\d+) ", said)
if not found:
    sys.exit(f"stress_ops: stress-ng said no count of operations:\n{said}")
print("SUMMARY " + json.dumps({"ops": int(found[-1])}))
