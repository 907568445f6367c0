"""What makes, saves and loads arrays, under the path of MXNet's file."""

from .._symbind import load, load_frombuffer, save
from ._creation import array, empty, zeros

__all__ = ["array", "empty", "load", "load_frombuffer", "save", "zeros"]
