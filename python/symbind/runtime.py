"""What this build of Symbind has, under the names of MXNet's features."""

import functools as _functools

from . import _symbind
from .util import _loaded_library

__all__ = ["Feature", "Features", "feature_list"]


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
def _uses_onednn():
    """Whether a convolution runs by oneDNN: its plan tells."""
    from . import symbol

    net = symbol.Convolution(symbol.Variable("x"), kernel=(3, 3), num_filter=16, name="conv")
    executor = net.simple_bind(_symbind.cpu(), x=(1, 16, 8, 8), grad_req="null")
    executor.forward()
    return "onednn" in executor.debug_str().lower()


def _enabled():
    gpus = _symbind.num_gpus() > 0
    flags = _processor()
    return {
        "CUDA": gpus,
        "CUDNN": gpus,
        "NCCL": False,
        "CUDA_RTC": gpus,
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
        "BLAS_OPEN": False,
        "BLAS_ATLAS": False,
        "BLAS_MKL": False,
        "BLAS_APPLE": False,
        "LAPACK": False,
        "MKLDNN": _uses_onednn(),
        "OPENCV": False,
        "CAFFE": False,
        "PROFILER": True,
        "DIST_KVSTORE": False,
        "CXX14": True,
        "INT64_TENSOR_SIZE": True,
        "SIGNAL_HANDLER": False,
        "DEBUG": False,
        "TVM_OP": False,
    }


def feature_list():
    """The features, each with whether this build has it."""
    return [Feature(name, enabled) for name, enabled in _enabled().items()]


class Features(dict):
    """The features by name: ``mx.runtime.Features().is_enabled("CUDA")``."""

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
        """Whether this build has it; RuntimeError for a name that is none."""
        name = feature_name.upper()
        if name not in self:
            raise _symbind.MXNetError(f"Feature {name!r} is unknown, known features are: {list(self)}")
        return self[name].enabled
