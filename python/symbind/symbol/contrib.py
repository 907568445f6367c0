"""Operators of MXNet's `contrib` namespace on symbols, as far as the registry has them."""

from .. import _functions

_functions.install(globals(), symbolic=True, prefixes=("_contrib_",))
