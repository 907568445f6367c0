"""DataParallelExecutorGroup: one network on several devices."""

import logging as _logging

from .._symbind import DataParallelExecutorGroup

__all__ = ["DataParallelExecutorGroup"]

DataParallelExecutorGroup.__module__ = __name__
DataParallelExecutorGroup.logger = _logging
DataParallelExecutorGroup._default_execs = None  # shapes that were bound before are kept inside
