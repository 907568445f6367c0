"""Data iterators: what feeds a network."""

from . import io
from .io import *  # noqa: F403
from .io import _init_data as _init_data

__all__ = io.__all__
