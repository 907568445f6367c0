"""Operators of MXNet's `contrib` namespace on symbols: those of mx.sym.contrib."""

from .. import _functions

_functions.install(globals(), symbolic=True, prefixes=("_contrib_",))
