"""faultless: what a Python program may ask of the allocator that it runs under.

    python -m faultless train.py     # preloads the library; PyTorch's optimizer steps mark the steps

    import faultless
    for batch in data:
        with faultless.step():       # or mark them by hand
            train(batch)

Where the library is not preloaded all of it does nothing, and says so once."""
import errno as _errno
import os as _os
from typing import Dict, Union

from ._library import is_loaded as _is_loaded
from ._library import library as _library_or_warning
from ._library import read_stats as _read_stats
from ._steps import next_step, step

__all__ = ["active", "next_step", "release", "set_option", "stats", "step", "__version__"]

__version__: str


def __getattr__(name: str) -> str:
    if name == "__version__":
        return _version()
    raise AttributeError("module 'faultless' has no attribute %r" % name)


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("faultless")
    except metadata.PackageNotFoundError:  # a source tree
        import os
        import re

        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "CMakeLists.txt")
        try:
            with open(top, encoding="utf-8") as file:
                found = re.search(r"project\(faultless VERSION (\S+)", file.read())
        except OSError:
            found = None
        return found.group(1) if found else "unknown"


def active() -> bool:
    """Whether the library is preloaded and serves the large requests of this process."""
    counters = _read_stats() if _is_loaded() else None
    return bool(counters and counters["active"])


def stats() -> Dict[str, int]:
    """The library's counters, by the names of `struct fl_stats`; empty where it is not preloaded."""
    _library_or_warning()
    return _read_stats() or {}


def release(keep: int = 0) -> int:
    """Gives free memory back to the kernel until at most `keep` bytes of it stay. Returns the bytes that went back."""
    library = _library_or_warning()
    if keep < 0:
        raise ValueError("keep is below zero")
    return max(library.fl_release(keep), 0) if library is not None else 0


def set_option(name: str, value: Union[str, int, None]) -> None:
    """Changes an option of this process: decay_ms, limit, eager_max, steps, trim or stats; None: its default.

    KeyError: there is no such option. ValueError: its value is not understood, or out of range. PermissionError: it is
    read at the start alone. Other OSErrors as of `fl_option_set`."""
    library = _library_or_warning()
    if library is None:
        return
    rc = library.fl_option_set(name.encode(), None if value is None else str(value).encode())
    if rc == -_errno.ENOENT:
        raise KeyError(name)
    if rc in (-_errno.EINVAL, -_errno.ERANGE):
        raise ValueError(f"{name}={value}")
    if rc != 0:
        raise OSError(-rc, _os.strerror(-rc), name)
