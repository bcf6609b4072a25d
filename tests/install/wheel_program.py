"""What an installed wheel promises, judged with the interpreter that it is installed in. Argument: faultless.h."""
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

HEADER = sys.argv.pop(1)

# PyTorch's optimizer as far as the hook sees it: from 2.0 on, and before.
NEW_TORCH = """
_hooks = []
def register_optimizer_step_post_hook(hook):
    _hooks.append(hook)
class Optimizer:
    def step(self):
        for hook in _hooks:
            hook(self, (), {})
"""
OLD_TORCH = """
class Optimizer:
    def __init__(self):
        step = self.__class__.step
        if not getattr(step, "hooked", None):
            self.__class__.step = self.profile_hook_step(step)
            self.__class__.step.hooked = True
    @staticmethod
    def profile_hook_step(function):
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)
        return wrapper
    def step(self):
        pass
"""
# How many planned steps ten iterations are, once the library has learned the loop. It learns beside
# the program, so that the number of iterations until then depends on the machine.
SERVED = """
import faultless

def work():
    blocks = [bytearray(n << 20) for n in (9, 3, 17, 5)]

def served(iterate):
    before = faultless.stats()["plan_steps"]
    for _ in range(3000):
        iterate()
        if faultless.stats()["plan_steps"] > before:
            break
    before = faultless.stats()["plan_steps"]
    for _ in range(10):
        iterate()
    return faultless.stats()["plan_steps"] - before
"""
# Two optimizers taking turns.
TRAIN = """
import sys
from served import served, work
from torch.optim.optimizer import Optimizer

assert sys.argv[1:] == ["--epochs", "3"], sys.argv
assert __name__ == "__main__"
first, second = Optimizer(), Optimizer()

def iterate():
    work()
    first.step()
    second.step()

print(served(iterate))
"""
CALLBACK = """
class Callback:
    pass
"""


def run(*command, **variables):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **variables})


class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("served.py", SERVED)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(textwrap.dedent(text))
        return path

    def write_torch(self, text):
        self.write("torch/__init__.py", "")
        self.write("torch/optim/__init__.py", "")
        self.write("torch/optim/optimizer.py", text)

    def python(self, *arguments, **variables):
        return run(sys.executable, *arguments, PYTHONPATH=self.folder, **variables)

    def expect(self, done, stdout):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, stdout, ""))

    def check_train(self, torch):
        self.write_torch(torch)
        train = self.write("train.py", TRAIN)
        self.expect(self.python("-m", "faultless", train, "--epochs", "3"), "10\n")

    def test_optimizer_steps_are_steps(self):
        self.check_train(NEW_TORCH)

    def test_optimizer_steps_are_steps_before_pytorch_2(self):
        self.check_train(OLD_TORCH)

    def test_options_modules_and_code(self):
        self.write("package/__init__.py", "")
        self.write("package/program.py", """
            import os, sys
            print(__name__, sys.argv[1:], os.environ["FAULTLESS_DECAY_MS"])
        """)
        self.expect(self.python("-m", "faultless", "-o", "decay_ms=77", "-m", "package.program", "-x"),
                    "__main__ ['-x'] 77\n")
        self.expect(self.python("-m", "faultless", "-c", "import sys, faultless; print(sys.argv, faultless.active())", "a"),
                    "['-c', 'a'] True\n")

    def test_status_is_the_programs(self):
        self.assertEqual(self.python("-m", "faultless", "-c", "raise SystemExit(7)").returncode, 7)

    def test_steps_by_hand(self):
        program = self.write("program.py", """
            import faultless
            from served import served, work

            @faultless.step
            def decorated(a=1, *, b=2):
                work()
                return a, b

            @faultless.step("evaluation")
            def named():
                work()

            def held():
                with faultless.step("other"):
                    work()

            def failing():
                try:
                    with faultless.step():
                        work()
                        raise KeyError
                except KeyError:
                    pass

            print(faultless.active(), decorated(3, b=4), decorated.__name__)
            print([served(f) for f in (decorated, named, held, failing)])
        """)
        self.expect(run("faultless", sys.executable, program), "True (3, 4) decorated\n[10, 10, 10, 10]\n")

    def test_without_the_library_nothing_but_one_warning(self):
        program = self.write("program.py", """
            import faultless
            assert not faultless.active()
            for _ in range(3):
                with faultless.step():
                    pass
                with faultless.step("x"):
                    pass
                faultless.next_step()
            faultless.set_option("decay_ms", 100)
            print(faultless.stats(), faultless.release())
        """)
        done = self.python(program)
        self.assertEqual((done.returncode, done.stdout), (0, "{} 0\n"))
        self.assertEqual(done.stderr.count("faultless is not preloaded"), 1)

    def test_memory_goes_back_and_options_change(self):
        program = self.write("program.py", """
            import faultless

            def held():
                return faultless.stats()["populated_bytes"] >> 20

            blocks = [bytearray(50 << 20) for _ in range(4)]
            del blocks
            print(held() >= 200, faultless.release(100 << 20) >= 100 << 20, held() <= 100)
            print(faultless.release() > 0, held(), faultless.release())
            faultless.set_option("decay_ms", 500)
            faultless.set_option("limit", "8G")
            faultless.set_option("limit", None)
            for name, value in (("decay", 1), ("decay_ms", "soon"), ("threshold", "1M")):
                try:
                    faultless.set_option(name, value)
                except Exception as error:
                    print(type(error).__name__)
        """)
        self.expect(self.python("-m", "faultless", program),
                    "True True True\nTrue 0 0\nKeyError\nValueError\nPermissionError\n")

    def check_callback(self, module, stub, begin, end):
        self.write(stub, CALLBACK)
        program = self.write("program.py", """
            import {0}
            from served import served, work
            steps = {0}.Steps()
            steps.{1}(0)  # and no end: an exception, or a batch that is left out

            def iterate():
                steps.{1}(0)
                work()
                steps.{2}(0)

            print(served(iterate))
        """.format(module, begin, end))
        self.expect(self.python("-m", "faultless", program), "10\n")

    def test_keras(self):
        self.write("keras/__init__.py", "")
        self.check_callback("faultless.keras", "keras/callbacks.py", "on_train_batch_begin", "on_train_batch_end")
        self.check_callback("faultless.keras", "keras/callbacks.py", "on_test_batch_begin", "on_test_batch_end")

    def test_lightning(self):
        self.write("lightning/__init__.py", "")
        self.write("lightning/pytorch/__init__.py", "")
        self.check_callback("faultless.lightning", "lightning/pytorch/callbacks.py", "on_train_batch_start",
                            "on_train_batch_end")

    def test_commands(self):
        import faultless

        for name in ("faultless", "faultstat"):
            done = run(name, "--version")
            self.assertEqual((done.returncode, done.stdout), (0, "%s %s\n" % (name, faultless.__version__)))
        self.assertEqual(run("faultplan", "--help").returncode, 0)
        self.assertEqual(run("faultless", "no-such-command").returncode, 127)

    def test_marks_reach_faultstat(self):
        program = self.write("program.py", """
            import faultless
            from served import work
            for _ in range(8):
                with faultless.step():
                    work()
        """)
        done = run("faultstat", "run", "--json=-", "--", "faultless", sys.executable, program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["steps"]), 7, done.stdout)  # the first mark ends no step

    def test_a_step_that_two_places_see_counts_once(self):
        self.write_torch(NEW_TORCH)
        program = self.write("program.py", """
            import sys
            import faultless
            from served import served, work
            from torch.optim.optimizer import Optimizer
            optimizer = Optimizer()

            def iterate():
                with faultless.step():
                    work()
                    if sys.argv[1] == "within":
                        optimizer.step()
                if sys.argv[1] == "after":
                    optimizer.step()

            if sys.argv[2:] == ["marks"]:
                for _ in range(8):
                    iterate()
            else:
                print(served(iterate))
        """)
        for where in ("within", "after"):
            self.expect(self.python("-m", "faultless", program, where), "10\n")
            done = run("faultstat", "run", "--json=-", "--", sys.executable, "-m", "faultless", program, where,
                       "marks", PYTHONPATH=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(len(json.loads(done.stdout)["steps"]), (7, 8), done.stdout)

    def test_counters_are_the_headers(self):
        from faultless import _library

        with open(HEADER) as f:
            struct = re.search(r"struct fl_stats \{(.*?)\};", f.read(), re.S).group(1)
        self.assertEqual(tuple(re.findall(r"uint64_t (\w+);", struct)), _library.FIELDS)

    def test_it_is_typed(self):
        import faultless

        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(faultless.__file__), "py.typed")))


unittest.main()
