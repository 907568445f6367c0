"""Names that scripts take from mxnet.base."""

import ctypes as _ctypes
import os as _os

import numpy as _np

from ._symbind import MXNetError
from .libinfo import __version__  # noqa: F401

__all__ = ["MXNetError", "NotImplementedForSymbol", "NotSupportedForSparseNDArray"]

mx_real_t = _np.float32
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


def build_param_doc(arg_names, arg_types, arg_descs, remove_dup=True):
    """The section "Parameters" of a docstring; with remove_dup a name that comes again is left out."""
    lines, seen = ["Parameters", "----------"], set()
    for name, kind, text in zip(arg_names, arg_types, arg_descs):
        if remove_dup and name in seen:
            continue
        seen.add(name)
        lines.append(f"{name} : {kind}")
        if text:
            lines.append(f"    {text}")
    return "\n".join([*lines, ""])


# ---- MXNet's C interface. Scripts import these names, often with others that they use; what needs no library works.

mx_int = _ctypes.c_int
mx_int64 = _ctypes.c_int64
mx_uint = _ctypes.c_uint
mx_float = _ctypes.c_float
mx_float_p = _ctypes.POINTER(mx_float)
mx_uint_p = _ctypes.POINTER(mx_uint)
CachedOpHandle = DataIterCreatorHandle = DataIterHandle = ExecutorHandle = FunctionHandle = _ctypes.c_void_p
KVStoreHandle = NDArrayHandle = OpHandle = OptimizerCreator = OptimizerHandle = _ctypes.c_void_p
ProfileHandle = RecordIOHandle = RtcHandle = SymbolHandle = _ctypes.c_void_p


class _NoLibrary:
    """In the place of MXNet's library."""

    def __getattr__(self, name):
        raise AttributeError(f"_LIB.{name}: Symbind has no C interface")


_LIB = _NoLibrary()


def check_call(ret):
    """Raises an error unless a C function has returned 0."""
    if ret != 0:
        raise MXNetError(f"a C function returned {ret}")


def c_str(string):
    """A text for a C function."""
    return _ctypes.c_char_p(string.encode("utf-8"))


def c_str_array(strings):
    """Texts for a C function."""
    return (_ctypes.c_char_p * len(strings))(*[string.encode("utf-8") for string in strings])


def c_array(ctype, values):
    """A C array with copies of the values."""
    return (ctype * len(values))(*values)


def c_array_buf(ctype, buf):
    """A C array over the memory of an array.array."""
    return (ctype * len(buf)).from_buffer(buf)


def c_handle_array(objs):
    """The handles of objects."""
    return c_array(_ctypes.c_void_p, [obj.handle for obj in objs])


def ctypes2buffer(cptr, length):
    """A bytearray with a copy of the bytes from a pointer on."""
    return bytearray(_ctypes.string_at(cptr, length))


def ctypes2numpy_shared(cptr, shape):
    """An array of NumPy over the memory from a pointer on."""
    return _np.ctypeslib.as_array(cptr, shape)
