"""Operators of MXNet's `contrib` namespace on arrays: those of mx.nd.contrib."""

from .. import _functions
from ..ndarray.contrib import boolean_mask, cond, foreach, while_loop  # noqa: F401

_functions.install(globals(), symbolic=False, prefixes=("_contrib_",))
