"""A scale for losses, so that gradients in 16 bits do not underflow."""

from ...ndarray import multi_all_finite

__all__ = ["LossScaler"]


class LossScaler:
    """The scale of a loss: halved whenever a gradient overflows, and doubled after a number of steps without one."""

    def __init__(self):
        self._loss_scale = 2.0**16
        self._next_loss_scale = self._loss_scale
        self._max_loss_scale = 2.0**24
        self._scale_seq_len = 2000
        self._unskipped = 0

    @property
    def loss_scale(self):
        """What the loss is multiplied by, and gradients are divided by."""
        return self._loss_scale

    def has_overflow(self, params):
        """Whether a gradient is not finite: the step is to be skipped then. `params` are objects with list_grad(), or
        arrays. Chooses the next scale."""
        grads = []
        for param in params:
            grads += param.list_grad() if hasattr(param, "list_grad") else [param]
        finite = all(float(multi_all_finite(grad, num_arrays=1).asscalar()) for grad in grads)
        self._loss_scale = self._next_loss_scale
        if not finite:
            self._next_loss_scale = max(1.0, self._loss_scale / 2)
            self._unskipped = 0
        else:
            self._unskipped += 1
            if self._unskipped == self._scale_seq_len:
                self._unskipped = 0
                self._next_loss_scale = min(self._max_loss_scale, self._loss_scale * 2)
        return not finite
