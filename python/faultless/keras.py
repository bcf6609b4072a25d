"""For Keras: `model.fit(..., callbacks=[faultless.keras.Steps()])` makes each batch a step."""
from typing import Any

from ._steps import Step, Turns

try:
    from keras.callbacks import Callback
except ImportError:
    from tensorflow.keras.callbacks import Callback

__all__ = ["Steps"]


class Steps(Callback):  # type: ignore[misc]
    """Batches of training are steps, and so are those of evaluation, as another kind."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = Turns()
        self._train = Step()
        self._test = Step("keras evaluation")

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._turns.begin(self._train)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._turns.end()

    def on_train_end(self, logs: Any = None) -> None:
        self._turns.end()

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._turns.begin(self._test)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._turns.end()

    def on_test_end(self, logs: Any = None) -> None:
        self._turns.end()
