"""Steps of a program: one iteration of its loop each. The library learns a step's large blocks and serves the next ones
from one arena."""
import contextlib
import ctypes
import threading
from typing import Any, Callable, Dict, List, Optional, TypeVar, Union, overload

from . import _library, marks

_Function = TypeVar("_Function", bound=Callable[..., Any])
_contexts: Dict[str, Optional[int]] = {}
_lock = threading.Lock()


class _Thread(threading.local):
    """What a thread has open: for each `with`, whether the library began a step there."""

    def __init__(self) -> None:
        self.begun: List[bool] = []
        self.in_loop = False  # the library's step between two calls of next_step()
        self.is_paced = False  # next_step() counts this thread's steps


_thread = _Thread()


def _context(name: str) -> Optional[int]:
    """The context of that name, made when it is first asked for; None: the thread's own. Never freed."""
    library = _library.library()
    if library is None:
        return None
    with _lock:
        if name not in _contexts:
            made = ctypes.c_void_p()
            _contexts[name] = made.value if library.fl_step_new(ctypes.byref(made)) == 0 else None
        return _contexts[name]


class Step(contextlib.ContextDecorator):
    """One iteration, as a context manager or a decorator. `name`: the kind of loop it is one of."""

    def __init__(self, name: Optional[str] = None) -> None:
        self._name = name

    def _id(self) -> Optional[int]:
        return None if self._name is None else _context(self._name)

    def __enter__(self) -> "Step":
        library = _library.library()
        _thread.begun.append(library is not None and library.fl_step_begin(self._id()) == 0)
        return self

    def __exit__(self, *_: Any) -> None:
        library = _library.library()
        if _thread.begun.pop() and library is not None:
            library.fl_step_end(self._id())
        if self._name is not None or not _thread.is_paced:
            marks.mark()


class Turns:
    """Steps that are told to begin and to end. One that is not told to end, because of an exception or a batch that is
    left out, ends where the next one begins."""

    def __init__(self) -> None:
        self._open: Optional[Step] = None

    def begin(self, which: Step) -> None:
        self.end()
        self._open = which.__enter__()

    def end(self) -> None:
        which, self._open = self._open, None
        if which is not None:
            which.__exit__()


@overload
def step(name: Optional[str] = None) -> Step: ...


@overload
def step(name: _Function) -> _Function: ...


def step(name: Union[None, str, _Function] = None) -> Union[Step, _Function]:
    """Marks one iteration of a loop: `with faultless.step():` in it, or `@faultless.step` above its body. Loops of several
    kinds have names: `faultless.step("evaluation")`. A step that turns out different costs memory, never correctness."""
    if callable(name):
        return Step()(name)
    return Step(name)


def next_step() -> None:
    """The calling thread's step ends here, and its next one begins: for loops in which one place alone can be reached.
    Within a step() it does nothing: that one counts."""
    if any(_thread.begun):
        return
    _thread.is_paced = True
    library = _library.library()
    if library is not None:
        if _thread.in_loop:
            library.fl_step_end(None)
        _thread.in_loop = library.fl_step_begin(None) == 0
    marks.mark()
