"""NDArray and what makes one, under the path of MXNet's file."""

from .._symbind import NDArray, load, save, waitall
from ._creation import arange, array, concatenate, empty, eye, full, moveaxis, onehot_encode, ones, zeros

__all__ = [
    "NDArray",
    "arange",
    "array",
    "concatenate",
    "empty",
    "eye",
    "full",
    "load",
    "moveaxis",
    "onehot_encode",
    "ones",
    "save",
    "waitall",
    "zeros",
]
