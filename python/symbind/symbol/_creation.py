"""Variables, groups, files, and functions that take symbols or numbers."""

from .. import _parts, _symbind
from .._functions import on_pair
from .._symbind import MXNetTypeError, MXNetValueError, Symbol


def Variable(
    name,
    attr=None,
    shape=None,
    lr_mult=None,
    wd_mult=None,
    dtype=None,
    init=None,
    stype=None,
    profiler_scope=None,
    **kwargs,
):
    """An input of a network. Keywords with double underscores (``__layout__``) become attributes."""
    if not isinstance(name, str):
        raise MXNetTypeError(f"a variable's name is text, not {type(name).__name__}")
    attributes = dict(attr or {})
    for key, value in attributes.items():
        if not isinstance(value, str):
            raise MXNetValueError(f"attributes are texts, but {key} is {value!r}")
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise MXNetValueError(f"Variable has no argument {key}: user-defined attributes begin and end with __")
        attributes[key] = str(value)
    if stype not in (None, "default"):
        raise NotImplementedError(f"arrays are dense here: there is no storage type {stype!r}")
    if init is not None and not isinstance(init, str):
        init = init.dumps()
    for key, value in (("__lr_mult__", lr_mult), ("__wd_mult__", wd_mult)):
        if value is not None:
            attributes[key] = str(value)  # "2.0" and "2" as they were written
    return _symbind._variable(name, attributes, shape, None, None, dtype, init or "")


var = Variable


def Group(symbols):
    """One symbol with the outputs of several."""
    symbols = list(symbols) if hasattr(symbols, "__iter__") else []
    if not symbols or any(not isinstance(symbol, Symbol) for symbol in symbols):
        raise MXNetTypeError("Group takes a list of symbols")
    return _symbind._group(symbols)


def load(fname):
    """A network from a file."""
    if not isinstance(fname, str):
        raise MXNetTypeError("the name of a file is text")
    return _symbind._load_symbol(fname)


def load_json(json_str):
    """A network from its JSON text."""
    if not isinstance(json_str, str):
        raise MXNetTypeError("the JSON of a network is text")
    return _symbind._load_symbol_json(json_str)


def zeros(shape, dtype=None, **kwargs):
    """Zeros of a shape."""
    return _made("_zeros", dtype, {"shape": shape, **kwargs})


def ones(shape, dtype=None, **kwargs):
    """Ones of a shape."""
    return _made("_ones", dtype, {"shape": shape, **kwargs})


def _made(op, dtype, attributes):
    attributes["dtype"] = "float32" if dtype is None else dtype
    return _symbind._require_op(op).on_symbols((), attributes)


def full(shape, val, dtype=None, **kwargs):
    """One value in a shape."""
    return _made("_full", dtype, {"shape": shape, "value": float(val), **kwargs})


def arange(start, stop=None, step=1.0, repeat=1, infer_range=False, name=None, dtype=None):
    """start, start + step, … before stop, each `repeat` times; one number is the stop.

    With `infer_range` and without a stop, there are as many numbers as the network needs.
    """
    attributes = {"start": start, "stop": stop, "step": step, "repeat": repeat, "infer_range": infer_range}
    return _made("_arange", dtype, {**attributes, "name": name})


def linspace(start, stop, num, endpoint=True, name=None, dtype=None):
    """`num` numbers evenly spaced from start to stop."""
    attributes = {"start": start, "stop": stop, "num": num, "endpoint": endpoint}
    return _made("_linspace", dtype, {**attributes, "name": name})


def eye(N, M=0, k=0, dtype=None, **kwargs):
    """Ones on a diagonal."""
    return _made("_eye", dtype, {"N": N, "M": M, "k": k, **kwargs})


def _pair(name, both_numbers, symbol_op, scalar_op, reversed_op, doc):
    def function(left, right):
        return on_pair(Symbol, left, right, both_numbers, symbol_op, scalar_op, reversed_op)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_pow = _pair("pow", lambda a, b: a**b, "_power", "_PowerScalar", "_RPowerScalar", "left to the power right")


def pow(base, exp):
    """base to the power exp"""
    return _pow(base, exp)


power = pow
maximum = _pair("maximum", max, "_maximum", "_MaximumScalar", "_MaximumScalar", "the greater of both")
minimum = _pair("minimum", min, "_minimum", "_MinimumScalar", "_MinimumScalar", "the lesser of both")
hypot = _pair(
    "hypot",
    lambda a, b: (a * a + b * b) ** 0.5,
    "_hypot",
    "_HypotScalar",
    "_HypotScalar",
    "the length of the diagonal",
)


def split_v2(ary, indices_or_sections, axis=0, squeeze_axis=False):
    """Splits along an axis: into a number of equal parts, or at indices (a tuple) where parts begin."""
    return _parts.split_v2(ary, indices_or_sections, axis, squeeze_axis, symbolic=True)


def histogram(a, bins=10, range=None, **kwargs):
    """The number of elements in each bin, and the edges of the bins: a number of equal bins of `range`, or a symbol
    with the edges."""
    return _parts.histogram(a, bins, range, symbolic=True, attributes=kwargs)


def element_mask(lhs, rhs, name=None, **kwargs):
    """Each row of `lhs`, which has two or more axes, times an element of `rhs`, as in older versions of MXNet."""

    def call(op, *operands, hint=None, **attributes):
        return _symbind._require_op(op).on_symbols(operands, attributes, hint or op)

    rows = call("broadcast_mul", call("Flatten", lhs), call("expand_dims", rhs, axis=1))
    return call("reshape_like", rows, lhs, hint="element_mask", name=name, **kwargs)
