"""Symbols, and every operator as a function on them."""

from .. import _functions
from .._symbind import Symbol
from . import _methods
from ._creation import (
    Group,
    Variable,
    arange,
    eye,
    full,
    hypot,
    linspace,
    load,
    load_json,
    maximum,
    minimum,
    ones,
    pow,
    power,
    var,
    zeros,
)
from . import contrib, image, linalg, random, sparse
from . import _internal, op, symbol

_methods.install(Symbol)
_functions.install(globals(), symbolic=True)
