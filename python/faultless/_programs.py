"""The programs that come with the package, each started in the place of this process."""
import os
import sys
from typing import List, NoReturn, Optional


def _is_ours(found: str) -> bool:
    """A program, not the script by which pip starts this package."""
    return (os.access(found, os.X_OK) and os.path.isfile(found)
            and os.path.realpath(found) != os.path.realpath(sys.argv[0]))


def path(name: str) -> Optional[str]:
    """The program's path: of this package, which is in two folders where it is installed to be edited, else of PATH."""
    import faultless

    folders = [os.path.join(folder, "bin") for folder in faultless.__path__]
    for folder in folders + os.get_exec_path():
        found = os.path.join(folder, name)
        if _is_ours(found):
            return found
    return None


def start(name: str, arguments: List[str]) -> NoReturn:
    program = path(name)
    if program is None:
        sys.exit("faultless: there is no program '%s' beside this package or in PATH%s"
                 % (name, "; it was built without jansson, libdw and ncurses" if name == "faultstat" else ""))
    os.execv(program, [program] + arguments)


def faultless() -> NoReturn:
    start("faultless", sys.argv[1:])


def faultstat() -> NoReturn:
    start("faultstat", sys.argv[1:])


def faultplan() -> NoReturn:
    start("faultplan", sys.argv[1:])
