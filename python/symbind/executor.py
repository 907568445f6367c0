"""Executors: networks bound to arrays."""

from ._symbind import Executor

__all__ = ["Executor"]
