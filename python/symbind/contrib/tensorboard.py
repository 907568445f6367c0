"""Metrics on TensorBoard."""

import logging as _logging

__all__ = ["LogMetricsCallback"]


def _writer(logging_dir):
    """A writer of events: mxboard's, which MXNet uses, or one of those that do the same."""
    for module in ("mxboard", "tensorboardX", "torch.utils.tensorboard"):
        try:
            return __import__(module, fromlist=["SummaryWriter"]).SummaryWriter(logging_dir)
        except ImportError:
            continue
    _logging.getLogger().error("LogMetricsCallback writes with mxboard: pip install mxboard")
    return None


class LogMetricsCallback:
    """A callback of batches and evaluations that writes the values of the metric for TensorBoard.

    Parameters
    ----------
    logging_dir : str
        The folder that TensorBoard is started with.
    prefix : str
        Put before the metric's name: "train-accuracy".
    """

    def __init__(self, logging_dir, prefix=None):
        self.prefix = prefix
        self.summary_writer = _writer(logging_dir)

    def __call__(self, param):
        if param.eval_metric is None or self.summary_writer is None:
            return
        for name, value in param.eval_metric.get_name_value():
            full = name if self.prefix is None else f"{self.prefix}-{name}"
            self.summary_writer.add_scalar(full, value, global_step=param.epoch)
