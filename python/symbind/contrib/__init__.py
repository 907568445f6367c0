"""MXNet's namespace `contrib`: operators, helpers for text, mixed precision, TensorBoard and SVRG."""

from . import io, ndarray, symbol
from . import ndarray as nd
from . import symbol as sym
from . import amp, svrg_optimization, tensorboard, text

__all__ = ["amp", "io", "nd", "ndarray", "svrg_optimization", "sym", "symbol", "tensorboard", "text"]
