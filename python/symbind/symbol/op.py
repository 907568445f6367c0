"""Every operator on symbols."""

from .. import _functions

_functions.install(globals(), symbolic=True)
