"""What is called while a network trains: after batches and after epochs."""

from collections import namedtuple as _namedtuple

from ._symbind import (
    LogValidationMetricsCallback,
    ProgressBar,
    Speedometer,
    do_checkpoint,
    log_train_metric,
    module_checkpoint,
)

__all__ = [
    "LogValidationMetricsCallback",
    "ProgressBar",
    "Speedometer",
    "do_checkpoint",
    "log_train_metric",
    "module_checkpoint",
]

# What a callback after a batch receives; scripts know it as mx.model.BatchEndParam.
BatchEndParam = _namedtuple("BatchEndParam", ["epoch", "nbatch", "eval_metric", "locals"], module="symbind.model")
