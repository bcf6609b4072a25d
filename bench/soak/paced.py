"""Runs a program of bench/workloads for long: epochs of so many steps and a pause in which freed memory decays.

  paced.py --seconds S --steps N --idle-ms N SCRIPT [ARGUMENT...]

The program is as it is; its Meter is replaced by one that goes on. After each step it looks at what the program computed:
`loss` and `s` must be finite, `s` the same in each step. Random draws begin anew with each epoch, so that epochs can be compared.
Each epoch ends in a line EPOCH {json}."""
import argparse, json, math, os, random, runpy, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(os.path.dirname(HERE), "workloads")
sys.path[:0] = [WORKLOADS, HERE]
import meter, process

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--idle-ms", type=int, default=3000)
parser.add_argument("script")
parser.add_argument("arguments", nargs=argparse.REMAINDER)
o = parser.parse_args()
errors = 0


class Paced:
    def __init__(self, name, args, with_children=False):
        self.first = None

    def look(self, names):
        global errors
        for name in ("loss", "s"):
            if name in names:
                value = float(names[name])
                if not math.isfinite(value):
                    errors += 1
                    print(f"paced: {name} is {value}", file=sys.stderr)
                if name == "s":
                    self.first = value if self.first is None else self.first
                    if abs(value - self.first) > 1e-9 * abs(self.first):
                        errors += 1
                        print(f"paced: s is {value!r} and was {self.first!r}", file=sys.stderr)

    def __iter__(self):
        begin, me, number, i = time.monotonic(), process.Process(), 0, 0
        while time.monotonic() - begin < o.seconds:
            random.seed(0)
            if "torch" in sys.modules:
                sys.modules["torch"].manual_seed(0)
            epoch = process.Epoch(me, number)
            for _ in range(o.steps):
                before, start = me.faults()[0], time.monotonic()
                yield i
                epoch.step(start, before)
                self.look(sys._getframe(1).f_globals)
                i += 1
            time.sleep(o.idle_ms / 1000)
            print("EPOCH " + json.dumps(epoch.leave(errors)), flush=True)
            number += 1

    def report(self):
        pass


meter.Meter = Paced
sys.argv = [o.script, *o.arguments]
runpy.run_path(o.script, run_name="__main__")
sys.exit(1 if errors else 0)
