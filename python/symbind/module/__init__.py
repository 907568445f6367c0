"""Modules: networks that are trained, evaluated and saved."""

from . import base_module, executor_group, module
from .base_module import BaseModule
from .module import Module


def __getattr__(name):
    if name in ("BucketingModule", "SequentialModule", "PythonModule", "PythonLossModule"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}': Symbind has no {name} yet")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
