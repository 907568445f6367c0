"""Operators of MXNet's `linalg` namespace on arrays, as far as the registry has them."""

from .. import _functions

_functions.install(globals(), symbolic=False, prefixes=("_linalg_",))
