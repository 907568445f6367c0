"""Operators of MXNet's `contrib` namespace on arrays: those of mx.nd.contrib."""

from .. import _functions

_functions.install(globals(), symbolic=False, prefixes=("_contrib_",))
