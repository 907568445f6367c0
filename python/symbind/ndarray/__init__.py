"""Arrays, and every operator as a function on them."""

from .. import _functions
from . import _methods
from ._creation import (
    arange,
    array,
    concatenate,
    empty,
    eye,
    from_dlpack,
    from_numpy,
    full,
    linspace,
    moveaxis,
    ones,
    onehot_encode,
    to_dlpack_for_read,
    to_dlpack_for_write,
    zeros,
)
from ._pairs import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    lesser,
    lesser_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    modulo,
    multiply,
    not_equal,
    power,
    subtract,
    true_divide,
)
from .._symbind import NDArray, load, load_frombuffer, save, waitall
from . import contrib, image, linalg, random, sparse
from . import _internal, ndarray, op, utils

_methods.install(NDArray)
_functions.install(globals(), symbolic=False)
