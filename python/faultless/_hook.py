"""Steps of a program that says nothing: each call of PyTorch's optimizer ends one. So a step has its accumulated batches,
its loading and whatever evaluation came between, as they are."""
import importlib.abc
import importlib.machinery
import sys
import types
import weakref
from typing import Any, Callable, Optional, Sequence

from ._steps import next_step

_MODULE = "torch.optim.optimizer"
_PATIENCE = 16  # calls of other optimizers after which one that is silent is taken for gone


class Pacer:
    """Which optimizer's calls count: where several take turns (GANs), the first one's alone."""

    def __init__(self, boundary: Callable[[], None]) -> None:
        self._boundary = boundary
        self._first: Optional["weakref.ref[Any]"] = None
        self._others = 0

    def __call__(self, optimizer: Any, *_: Any) -> None:
        first = self._first() if self._first is not None else None
        if first is not optimizer and first is not None and self._others < _PATIENCE:
            self._others += 1
            return
        if first is not optimizer:
            self._first = weakref.ref(optimizer)
        self._others = 0
        self._boundary()


def hook_optimizers(module: types.ModuleType) -> None:
    pacer = Pacer(next_step)
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(pacer)
        return
    # Before PyTorch 2.0 there is no such hook; each class's step() is wrapped by this function.
    optimizer: Any = module.Optimizer
    wrap = getattr(optimizer, "profile_hook_step", None)
    if wrap is None:
        return
    inner = wrap

    def profile_hook_step(function: Callable[..., Any]) -> Callable[..., Any]:
        profiled = inner(function)

        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = profiled(self, *args, **kwargs)
            pacer(self)
            return result

        return step

    optimizer.profile_hook_step = staticmethod(profile_hook_step)


class _Loader(importlib.abc.Loader):
    """The module's own loader; the hook is set when the module has run."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[types.ModuleType]:
        module: Optional[types.ModuleType] = self._inner.create_module(spec)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        self._inner.exec_module(module)
        hook_optimizers(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Optional[Sequence[str]],
                  target: Optional[types.ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname != _MODULE:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target) if finder is not self else None
            if spec is not None:
                spec.loader = _Loader(spec.loader)
                return spec
        return None


def install() -> None:
    """From now on: at once if PyTorch is there already, else as it is imported."""
    if _MODULE in sys.modules:
        hook_optimizers(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder())
