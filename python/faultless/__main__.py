"""python -m faultless [-o OPTION=VALUE]... [-m MODULE | -c CODE | SCRIPT] [ARGUMENT...]

Runs a Python program under the library, with PyTorch's optimizer steps as its steps."""
import os
import runpy
import subprocess
import sys
from typing import List, Tuple

from . import _hook, _library, _programs

_STARTED = "_FAULTLESS_STARTED"  # the process that was started anew: where the library does not come, once is enough


def _split(arguments: List[str]) -> Tuple[List[str], List[str]]:
    """The launcher's options, and the program."""
    options: List[str] = []
    rest = list(arguments)
    while rest[:1] == ["-o"] and len(rest) > 1:
        options += rest[:2]
        del rest[:2]
    return options, rest


def _run(program: List[str]) -> None:
    kind = program[0]
    if kind in ("-m", "-c"):
        if len(program) < 2:
            sys.exit(__doc__)
        sys.argv = [kind] + program[2:]
        sys.path[0] = os.getcwd() if kind == "-m" else ""
        if kind == "-m":
            runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        else:
            main = sys.modules["__main__"].__dict__
            main.update(__file__=None, __spec__=None)
            exec(compile(program[1], "<string>", "exec"), main)
        return
    sys.argv = program
    sys.path[0] = os.path.dirname(os.path.realpath(kind))
    runpy.run_path(kind, run_name="__main__")


def main() -> None:
    options, program = _split(sys.argv[1:])
    if not program or program[0] in ("-h", "--help"):
        sys.exit(__doc__ if not program else print(__doc__))
    started = os.environ.pop(_STARTED, None) == str(os.getpid())
    if not _library.is_loaded() and not started:
        os.environ[_STARTED] = str(os.getpid())
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        _programs.start("faultless", options + ["--", sys.executable, *flags, "-m", "faultless", *program])
    if _library.library() is not None:
        _hook.install()
    _run(program)


main()
