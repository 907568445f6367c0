"""Symbols, and every operator as a function on them."""

from .. import _functions
from . import _methods
from .symbol import *  # noqa: F403
from . import contrib, image, linalg, random, sparse
from . import _internal, op, symbol

_methods.install(symbol.Symbol)
_functions.install(globals(), symbolic=True)
