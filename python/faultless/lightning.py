"""For Lightning: `Trainer(callbacks=[faultless.lightning.Steps()])` makes each batch a step."""
from typing import Any

from ._steps import Step, Turns

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

__all__ = ["Steps"]


class Steps(Callback):  # type: ignore[misc]
    """Batches of training are steps, and so are those of validation, as another kind."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = Turns()
        self._train = Step()
        self._validation = Step("lightning validation")

    def on_train_batch_start(self, *_: Any, **__: Any) -> None:
        self._turns.begin(self._train)

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self._turns.end()

    def on_validation_batch_start(self, *_: Any, **__: Any) -> None:
        self._turns.begin(self._validation)

    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        self._turns.end()

    def on_exception(self, *_: Any, **__: Any) -> None:
        self._turns.end()
