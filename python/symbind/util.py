"""Small helpers of mxnet.util: GPUs, environment variables, and the meaning of shapes."""

import functools as _functools
import os as _os
import types as _types

from . import _symbind
from ._symbind import MXNetError, MXNetValueError, _gpu_number, num_gpus

__all__ = ["get_gpu_count", "get_gpu_memory", "getenv", "is_np_array", "is_np_shape", "makedirs", "setenv"]


def makedirs(d):
    """Makes a folder and those above it; one that exists is fine."""
    _os.makedirs(_os.path.expanduser(d), exist_ok=True)


def get_gpu_count():
    """How many GPUs there are."""
    return num_gpus()


def get_gpu_memory(gpu_dev_id):
    """(free, total) bytes of a GPU's memory, from the driver."""
    import ctypes

    if not 0 <= gpu_dev_id < num_gpus():
        raise MXNetError(f"gpu({gpu_dev_id}) is not available: the number of GPUs is {num_gpus()}")
    # The library that Symbind itself runs on is loaded already; its name carries a version.
    runtime = _loaded_library("libcudart")
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if runtime is None or ctypes.CDLL(runtime).cudaSetDevice(_gpu_number(gpu_dev_id)) != 0:
        raise MXNetError(f"the CUDA runtime cannot select gpu({gpu_dev_id})")
    if ctypes.CDLL(runtime).cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) != 0:
        raise MXNetError(f"the CUDA runtime does not report the memory of gpu({gpu_dev_id})")
    return free.value, total.value


def _loaded_library(prefix):
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if _os.path.basename(path).startswith(prefix):
                return path
    return None


def getenv(name):
    """An environment variable; None if it is not set."""
    return _os.environ.get(name)


def setenv(name, value):
    """Sets an environment variable; None removes it."""
    if value is None:
        _os.environ.pop(name, None)
    else:
        _os.environ[name] = str(value)


def is_np_shape():
    """Do shapes have NumPy's meaning on this thread? See `np_shape`."""
    return _symbind._uses_numpy_shapes()


def is_np_array():
    """False: MXNet's NumPy-like arrays are not part of Symbind."""
    return False


def set_np_shape(active):
    """Turns NumPy's shapes on or off for this thread, and returns what they were. See `np_shape`."""
    return _symbind._use_numpy_shapes(bool(active))


def _refuse_arrays(active):
    if active:
        raise NotImplementedError("MXNet's NumPy arrays are not part of Symbind: arrays are mx.nd.NDArray")


def set_np(shape=True, array=True):
    """Turns NumPy's shapes on; MXNet's NumPy arrays are refused."""
    _refuse_arrays(array)
    set_np_shape(shape)


def reset_np():
    """Turns NumPy's shapes off."""
    set_np_shape(False)


class np_shape:
    """``with np_shape():`` gives shapes NumPy's meaning on this thread: 0 is an axis without elements, () an array
    without axes, and an unknown dimension is -1. Without it 0 is an unknown dimension in a shape that is given to a
    symbol, and a single element has the shape (1,)."""

    def __init__(self, active=True):
        self._active = active

    def __enter__(self):
        self._outer = set_np_shape(self._active)
        return self

    def __exit__(self, *exception):
        set_np_shape(self._outer)


class np_array:
    """``with np_array(False):`` is accepted; MXNet's NumPy arrays are not part of Symbind."""

    def __init__(self, active=True):
        _refuse_arrays(active)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


def use_np_shape(func):
    """A function, or a class with all of its methods, that runs with NumPy's shapes."""
    if isinstance(func, type):
        for name, method in list(vars(func).items()):
            if isinstance(method, _types.FunctionType):
                setattr(func, name, use_np_shape(method))
        return func

    @_functools.wraps(func)
    def with_np_shape(*args, **kwargs):
        with np_shape():
            return func(*args, **kwargs)

    return with_np_shape


def use_np_array(func):
    """Refuses: a function decorated so expects MXNet's NumPy arrays."""
    _refuse_arrays(True)


use_np = use_np_array


def set_module(module):
    """A decorator that sets the `__module__` of a function or class."""

    def decorate(function):
        if module is not None:
            function.__module__ = module
        return function

    return decorate


def get_cuda_compute_capability(ctx):
    """The compute capability of a GPU as a number: 90 for 9.0."""
    import ctypes

    if ctx.device_type != "gpu":
        raise MXNetValueError(f"expected a GPU's context, not {ctx}")
    if not 0 <= ctx.device_id < num_gpus():
        raise MXNetError(f"{ctx} is not available: the number of GPUs is {num_gpus()}")
    driver = ctypes.CDLL("libcuda.so.1")
    major, minor, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    failed = driver.cuDeviceGet(ctypes.byref(device), _gpu_number(ctx.device_id))
    failed |= driver.cuDeviceGetAttribute(
        ctypes.byref(major), 75, device
    )  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    failed |= driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    if failed:
        raise MXNetError(f"the CUDA driver does not report the compute capability of {ctx}")
    return 10 * major.value + minor.value
