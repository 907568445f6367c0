"""The module of learning-rate schedules in the first versions of MXNet."""

from . import lr_scheduler as _lr_scheduler
from ._symbind import MXNetValueError
from .log import logger_of as _logger_of

__all__ = ["FactorScheduler", "LearningRateScheduler"]


class LearningRateScheduler(_lr_scheduler.LRScheduler):
    """Base of the schedules: a function of the number of updates."""

    def __init__(self):
        super().__init__()

    def __call__(self, iteration):
        """The rate for an update."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class FactorScheduler(LearningRateScheduler):
    """base_lr times a power of `factor`, one higher every `step` updates."""

    def __init__(self, step, factor=0.1):
        super().__init__()
        if step < 1:
            raise MXNetValueError(f"step is the number of updates between two changes, at least 1, not {step}")
        if factor >= 1:
            raise MXNetValueError(f"the rate falls for a factor below 1, not {factor}")
        self.step = step
        self.factor = factor
        self._last = None

    def __call__(self, iteration):
        rate = self.base_lr * self.factor ** (iteration // self.step)
        if self._last is not None and rate != self._last:
            _logger_of(None).info("At update %d the learning rate becomes %.5f", iteration, rate)
        self._last = rate
        return rate
