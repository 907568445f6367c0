"""The module of learning-rate schedules in the first versions of MXNet."""

from .lr_scheduler import FactorScheduler
from .lr_scheduler import LRScheduler as LearningRateScheduler

__all__ = ["FactorScheduler", "LearningRateScheduler"]
