"""What this build of Symbind has, under the names of MXNet's features."""

import functools as _functools
import platform as _platform

import numpy as _numpy

from . import _symbind
from .libinfo import __version__ as _interface
from .util import _loaded_library

__all__ = ["Feature", "Features", "feature_list", "report"]


class Feature:
    """A part that a build has or has not."""

    def __init__(self, name, enabled):
        self._name = name
        self._enabled = enabled

    @property
    def name(self):
        """MXNet's name of it."""
        return self._name

    @property
    def enabled(self):
        """Is it part of this build, and usable on this machine?"""
        return self._enabled

    def __repr__(self):
        return f"{'✔' if self.enabled else '✖'} {self.name}"


@_functools.lru_cache(maxsize=1)
def _processor():
    """The words the system has for what the processor can do."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("flags"):
                    return frozenset(line.split(":", 1)[1].split())
    except OSError:
        pass
    return frozenset()


@_functools.lru_cache(maxsize=1)
def _parts():
    """What the library can use: by name, whether it is usable, and its version or what is missing."""
    return {name: (usable, details) for name, usable, details in _symbind._parts()}


def _usable(name):
    return name in _parts() and _parts()[name][0]


def _enabled():
    flags = _processor()
    gpus = _usable("CUDA")
    return {
        "CUDA": gpus,
        "CUDNN": gpus and _usable("cuDNN"),
        "NCCL": gpus and _usable("NCCL"),
        "CUDA_RTC": gpus and _usable("NVRTC"),
        "TENSORRT": False,
        "CPU_SSE": "sse" in flags,
        "CPU_SSE2": "sse2" in flags,
        "CPU_SSE3": "pni" in flags,
        "CPU_SSE4_1": "sse4_1" in flags,
        "CPU_SSE4_2": "sse4_2" in flags,
        "CPU_SSE4A": "sse4a" in flags,
        "CPU_AVX": "avx" in flags,
        "CPU_AVX2": "avx2" in flags,
        "OPENMP": _loaded_library("libgomp") is not None,
        "SSE": "sse" in flags,
        "F16C": "f16c" in flags,
        "JEMALLOC": False,
        "BLAS_OPEN": _usable("LAPACK"),
        "BLAS_ATLAS": False,
        "BLAS_MKL": False,
        "BLAS_APPLE": False,
        "LAPACK": _usable("LAPACK"),
        "MKLDNN": _usable("oneDNN"),
        "OPENCV": False,
        "CAFFE": False,
        "PROFILER": True,
        "DIST_KVSTORE": _usable("Open MPI"),
        "CXX14": True,
        "INT64_TENSOR_SIZE": True,
        "SIGNAL_HANDLER": False,
        "DEBUG": False,
        "TVM_OP": False,
    }


def report():
    """A text for reports of problems: the versions, and every part with its version or what is missing.

    ``python -m symbind doctor`` prints it.
    """
    lines = [
        f"Symbind {_symbind._version()} with the interface of MXNet {_interface}",
        f"Python {_platform.python_version()}, NumPy {_numpy.__version__}",
        f"{_platform.platform()}, {_platform.processor() or _platform.machine()}",
        "",
    ]
    width = max(map(len, _parts()))
    for name, (usable, details) in _parts().items():
        lines.append(f"{'✔' if usable else '✖'} {name:<{width}}  {details}".rstrip())
    return "\n".join(lines)


def feature_list():
    """A list of all features. Each says whether it is part of this build and usable on this machine."""
    return [Feature(name, enabled) for name, enabled in _enabled().items()]


class Features(dict):
    """All features by name. ``mx.runtime.Features().is_enabled("CUDA")`` says whether GPUs can be used."""

    instance = None

    def __new__(cls):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            super().__init__(cls.instance, [(feature.name, feature) for feature in feature_list()])
        return cls.instance

    def __init__(self):  # the one object there is stays as it is
        pass

    def __repr__(self):
        return str(list(self.values()))

    def is_enabled(self, feature_name):
        """Is the feature part of this build, and usable on this machine? An unknown name raises a RuntimeError."""
        name = feature_name.upper()
        if name not in self:
            raise _symbind.MXNetError(f"Feature {name!r} is unknown, known features are: {list(self)}")
        return self[name].enabled
