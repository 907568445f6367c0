"""Small helpers of mxnet.util: what there is of GPUs, the environment, and MXNet's NumPy modes, which are never on."""

import os as _os

from ._symbind import MXNetError, num_gpus

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
        raise MXNetError(f"there is no gpu({gpu_dev_id}): the number of GPUs is {num_gpus()}")
    # The library that Symbind itself runs on is loaded already; its name carries a version.
    runtime = _loaded_library("libcudart")
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if runtime is None or ctypes.CDLL(runtime).cudaSetDevice(gpu_dev_id) != 0:
        raise MXNetError(f"the CUDA runtime does not answer for gpu({gpu_dev_id})")
    if ctypes.CDLL(runtime).cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) != 0:
        raise MXNetError(f"the CUDA runtime does not tell the memory of gpu({gpu_dev_id})")
    return free.value, total.value


def _loaded_library(prefix):
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if _os.path.basename(path).startswith(prefix):
                return path
    return None


def getenv(name):
    """A variable of the environment; None where it is not set."""
    return _os.environ.get(name)


def setenv(name, value):
    """Sets a variable of the environment, or with None takes it away."""
    if value is None:
        _os.environ.pop(name, None)
    else:
        _os.environ[name] = str(value)


def is_np_shape():
    """False: shapes have MXNet's old meaning here, in which 0 is an unknown dimension."""
    return False


def is_np_array():
    """False: MXNet's NumPy-like arrays are not part of Symbind."""
    return False


def _refuse(active, what):
    if active:
        raise NotImplementedError(
            f"{what} is not part of Symbind: arrays are mx.nd.NDArray, and 0 is an unknown dimension"
        )


def set_np_shape(active):
    """Refuses NumPy's shapes; turning them off is fine. Gives False, as they were."""
    _refuse(active, "MXNet's NumPy shape mode")
    return False


def set_np(shape=True, array=True):
    """Refuses MXNet's NumPy mode."""
    _refuse(shape or array, "MXNet's NumPy mode")


def reset_np():
    """Turns the NumPy mode off, which it always is."""


class _Scope:
    def __init__(self, active, what):
        _refuse(active, what)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


def np_shape(active=True):
    """``with np_shape(False):`` is accepted, with True refused."""
    return _Scope(active, "MXNet's NumPy shape mode")


def np_array(active=True):
    """``with np_array(False):`` is accepted, with True refused."""
    return _Scope(active, "MXNet's NumPy array mode")


def use_np(func):
    """Refuses: a function decorated so expects MXNet's NumPy mode."""
    _refuse(True, "MXNet's NumPy mode")


use_np_shape = use_np_array = use_np


def set_module(module):
    """A decorator that gives a function or class another `__module__`."""

    def decorate(function):
        if module is not None:
            function.__module__ = module
        return function

    return decorate


def get_cuda_compute_capability(ctx):
    """The compute capability of a GPU as a number: 90 for 9.0."""
    import ctypes

    if ctx.device_type != "gpu":
        raise ValueError(f"expected a GPU's context, not {ctx}")
    if not 0 <= ctx.device_id < num_gpus():
        raise MXNetError(f"there is no {ctx}: the number of GPUs is {num_gpus()}")
    driver = ctypes.CDLL("libcuda.so.1")
    major, minor, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    failed = driver.cuDeviceGet(ctypes.byref(device), ctx.device_id)
    failed |= driver.cuDeviceGetAttribute(
        ctypes.byref(major), 75, device
    )  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    failed |= driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    if failed:
        raise MXNetError(f"the CUDA driver does not tell the compute capability of {ctx}")
    return 10 * major.value + minor.value
