"""Operators of MXNet's `contrib` namespace on symbols: those of mx.sym.contrib."""

from .. import _functions
from ..symbol.contrib import boolean_mask, cond, foreach, while_loop  # noqa: F401

_functions.install(globals(), symbolic=True, prefixes=("_contrib_",))
