"""faultless: what a Python program may ask of the allocator that it runs under.

    python -m faultless train.py     # preloads the library; PyTorch's optimizer steps mark the steps

    import faultless
    for batch in data:
        with faultless.step():       # or mark them by hand
            train(batch)

Where the library is not preloaded all of it does nothing, and says so once."""
from typing import Dict

from ._library import is_loaded as _is_loaded
from ._library import library as _library_or_warning
from ._library import read_stats as _read_stats
from ._steps import next_step, step

__all__ = ["active", "next_step", "stats", "step", "__version__"]

__version__: str


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("faultless")
    raise AttributeError("module 'faultless' has no attribute %r" % name)


def active() -> bool:
    """Whether the library is preloaded and serves the large requests of this process."""
    counters = _read_stats() if _is_loaded() else None
    return bool(counters and counters["active"])


def stats() -> Dict[str, int]:
    """The library's counters, by the names of `struct fl_stats`; empty where it is not preloaded."""
    _library_or_warning()
    return _read_stats() or {}
