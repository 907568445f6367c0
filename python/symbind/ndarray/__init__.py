"""Arrays, and every operator as a function on them."""

from .. import _functions
from . import _methods
from .ndarray import *  # noqa: F403
from .._symbind import load_frombuffer
from . import contrib, image, linalg, random, sparse
from . import _internal, ndarray, op, utils

_methods.install(ndarray.NDArray)
_functions.install(globals(), symbolic=False)
