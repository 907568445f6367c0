"""What is called while a network trains: after batches and after epochs."""

from ._symbind import (
    EarlyStopping,
    LogValidationMetricsCallback,
    ProgressBar,
    SaveBest,
    Speedometer,
    StopTraining,
    do_checkpoint,
    log_train_metric,
    module_checkpoint,
)

__all__ = [
    "EarlyStopping",
    "LogValidationMetricsCallback",
    "ProgressBar",
    "SaveBest",
    "Speedometer",
    "StopTraining",
    "do_checkpoint",
    "log_train_metric",
    "module_checkpoint",
]
