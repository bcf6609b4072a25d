"""The programs that come with the package, each started in the place of this process."""
import os
import sys
from typing import List, NoReturn, Optional

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def path(name: str) -> Optional[str]:
    """The program's path: of this package, else (in a source tree) of PATH."""
    ours = os.path.join(_FOLDER, name)
    if os.access(ours, os.X_OK):
        return ours
    for folder in os.get_exec_path():
        found = os.path.join(folder, name)
        if os.access(found, os.X_OK) and not os.path.isdir(found):
            return found
    return None


def start(name: str, arguments: List[str]) -> NoReturn:
    program = path(name)
    if program is None:
        sys.exit("faultless: no program '%s' in %s or in PATH" % (name, _FOLDER))
    os.execv(program, [program] + arguments)


def faultless() -> NoReturn:
    start("faultless", sys.argv[1:])


def faultstat() -> NoReturn:
    start("faultstat", sys.argv[1:])


def faultplan() -> NoReturn:
    start("faultplan", sys.argv[1:])
