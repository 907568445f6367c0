"""Every operator on arrays, those with an underscore before their name among them."""

from .. import _functions

_functions.install(globals(), symbolic=False, prefixes=("",), private=True)
