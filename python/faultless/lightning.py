"""For Lightning: `Trainer(callbacks=[faultless.lightning.Steps()])` makes each batch a step."""
from typing import Any

from ._steps import Step

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

__all__ = ["Steps"]


class Steps(Callback):  # type: ignore[misc]
    """Batches of training are steps, and so are those of validation, as another kind. Not with `python -m faultless` as
    well: there the optimizer's steps are the steps."""

    def __init__(self) -> None:
        super().__init__()
        self._train = Step()
        self._validation = Step("lightning validation")

    def on_train_batch_start(self, *_: Any, **__: Any) -> None:
        self._train.__enter__()

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self._train.__exit__()

    def on_validation_batch_start(self, *_: Any, **__: Any) -> None:
        self._validation.__enter__()

    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        self._validation.__exit__()
