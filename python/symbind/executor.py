"""Executors: networks bound to arrays."""

from ._functions import install_method
from ._symbind import Executor

__all__ = ["Executor"]


def _forward(self, /, is_train=False, **kwargs):
    """Runs the network and returns its outputs. Arrays given by the name of an argument are copied into it first;
    is_train selects training mode."""
    return self._forward(is_train, kwargs)


def _reshape(self, /, partial_shaping=False, allow_up_sizing=False, own_memory=False, **kwargs):
    """An executor for other shapes of the arguments, which shares the arrays of this one where their shapes stay the
    same."""
    return self._reshape(partial_shaping, allow_up_sizing, own_memory, kwargs)


install_method(Executor, "forward", _forward)
install_method(Executor, "reshape", _reshape)
