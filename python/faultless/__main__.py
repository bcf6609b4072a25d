"""python -m faultless [--tune] [-o OPTION=VALUE]... [PYTHON'S OPTIONS] [-m MODULE | -c CODE | SCRIPT | -] [ARGUMENT...]

Runs a Python program under the library, with PyTorch's optimizer steps as its steps.
--library prints the library's path, --version the version."""
import importlib.util
import marshal
import os
import pkgutil
import re
import runpy
import subprocess
import sys
import types
from typing import Any, Dict, List, Tuple

from . import _hook, _library, _programs, _version

_STARTED = "_FAULTLESS_STARTED"  # the process that was started anew: where the library does not come, once is enough


def _split(arguments: List[str]) -> Tuple[List[str], List[str], List[str]]:
    """The launcher's options, Python's, and the program, which begins with -m, -c or its name."""
    ours: List[str] = []
    pythons: List[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        takes = re.match(r"-([^-mcWX][^mcWX]*)?([mcWX])(.*)", word, re.S)  # as getopt(3) reads a word of letters
        if word == "--tune":
            ours.append(word)
        elif word.startswith("-o"):
            ours += [word] + (rest[:1] if word == "-o" else [])
            del rest[: word == "-o"]
        elif word == "--":
            break
        elif takes is None or takes[2] in "WX":
            has_value = word == "--check-hash-based-pycs" if takes is None else not takes[3]
            pythons += [word] + (rest[:1] if has_value else [])
            del rest[:has_value]
        else:
            pythons += ["-" + takes[1]] if takes[1] else []
            return ours, pythons, ["-" + takes[2]] + ([takes[3]] if takes[3] else []) + rest
    return ours, pythons, rest


def _own_main() -> Dict[str, Any]:
    """The names of the program's __main__, without ours."""
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    return main.__dict__


def _run_module(name: str, is_named: bool) -> None:
    _own_main()
    runpy._run_module_as_main(name, is_named)  # type: ignore[attr-defined] # what the interpreter itself calls


def _run_script(path: str) -> None:
    """Read once: it may be a pipe. Its names stay, for threads and exit handlers."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        line = "%s: can't open file %r: [Errno %d] %s\n"
        sys.stderr.write(line % (sys.executable, os.path.abspath(path), error.errno, error.strerror))
        sys.exit(2)
    names = _own_main()
    names["__file__"] = path
    names["__cached__"] = None
    is_compiled = text.startswith(importlib.util.MAGIC_NUMBER)
    exec(marshal.loads(text[16:]) if is_compiled else compile(text, path, "exec"), names)


def _put_first(folder: str) -> None:
    """As python does with -c, -m or a script, unless it is told not to (-I, -P)."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path[0] = folder


def _run(program: List[str]) -> None:
    kind, rest = program[0], program[1:]
    sys.argv = program
    if kind in ("-m", "-c") and not rest:
        sys.exit(__doc__)
    if kind == "-m":
        _put_first(os.getcwd())
        sys.argv = [kind] + rest[1:]
        _run_module(rest[0], True)
    elif kind in ("-c", "-"):
        _put_first("")
        sys.argv = [kind] + rest[kind == "-c" :]
        name, text = ("<string>", rest[0]) if kind == "-c" else ("<stdin>", sys.stdin.read())
        exec(compile(text, name, "exec"), _own_main())
    elif pkgutil.get_importer(kind) is not None:  # a folder or an archive
        sys.path[0] = os.path.abspath(kind)
        _run_module("__main__", False)
    else:
        _put_first(os.path.dirname(os.path.realpath(kind)))
        _run_script(kind)


def main() -> None:
    ours, pythons, program = _split(sys.argv[1:])
    first = pythons[0] if pythons else ""
    if first in ("-h", "--help"):
        sys.exit(print(__doc__))  # type: ignore[func-returns-value]
    if first in ("-V", "--version"):
        sys.exit(print("faultless " + _version()))  # type: ignore[func-returns-value]
    if first == "--library":
        _programs.start("faultless", [first])
    if not program:
        sys.exit(__doc__)
    started = os.environ.pop(_STARTED, None) == str(os.getpid())
    if not started and (ours or pythons or not _library.is_loaded()):
        os.environ[_STARTED] = str(os.getpid())
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        flags += ["-u"] if sys.stdout is not None and getattr(sys.stdout, "write_through", False) else []
        for name, value in sys._xoptions.items():
            flags += ["-X", name if value is True else "%s=%s" % (name, value)]
        _programs.start("faultless", ours + ["--", sys.executable, *flags, *pythons, "-m", "faultless", *program])
    if _library.library() is not None:
        _hook.install()
    _run(program)


main()
