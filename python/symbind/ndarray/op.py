"""Every operator on arrays."""

from .. import _functions

_functions.install(globals(), symbolic=False)
