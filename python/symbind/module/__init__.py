"""Modules: networks that are trained, evaluated and saved."""

from . import base_module, bucketing_module, executor_group, module, python_module, sequential_module
from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .module import Module
from .python_module import PythonLossModule, PythonModule
from .sequential_module import SequentialModule
