"""Names that scripts take from mxnet.base."""

import os as _os

import numpy as _np

from ._symbind import MXNetError
from .libinfo import __version__  # noqa: F401

__all__ = ["MXNetError", "NotImplementedForSymbol", "NotSupportedForSparseNDArray"]

mx_real_t = _np.float32
mx_uint = int
mx_float = float
string_types = (str,)
numeric_types = (float, int, _np.generic)
integer_types = (int, _np.int32, _np.int64)


class NotImplementedForSymbol(MXNetError):
    """Raised where a Symbol is asked for what only an NDArray has: values."""

    def __init__(self, function, alias=None, *args):
        name = getattr(function, "__name__", str(function))
        text = f"a Symbol has no values, so {name} is not defined for it"
        super().__init__(f"{text} (use {alias})" if alias else text)


class NotSupportedForSparseNDArray(MXNetError):
    """Raised by calls that need sparse storage: arrays are dense here."""

    def __init__(self, function, alias=None, *args):
        name = getattr(function, "__name__", str(function))
        super().__init__(f"{alias or name} needs sparse storage, and arrays are dense here")


def py_str(value):
    """Text from bytes or text."""
    return value.decode("utf-8") if isinstance(value, bytes) else value


def data_dir_default():
    """The folder of downloads without $MXNET_HOME: ~/.mxnet."""
    return _os.path.join(_os.path.expanduser("~"), ".mxnet")


def data_dir():
    """The folder of downloads: $MXNET_HOME, else ~/.mxnet."""
    return _os.environ.get("MXNET_HOME", data_dir_default())


def _as_list(obj):
    return list(obj) if isinstance(obj, (list, tuple)) else [obj]


def c_str(value):
    """The bytes of a text."""
    return value.encode("utf-8")
