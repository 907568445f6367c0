"""DataParallelExecutorGroup: one network on several devices."""

from .._symbind import DataParallelExecutorGroup

__all__ = ["DataParallelExecutorGroup"]
