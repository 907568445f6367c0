"""Every operator on symbols, those with an underscore before their name among them."""

from .. import _functions

_functions.install(globals(), symbolic=True, prefixes=("",), private=True)
