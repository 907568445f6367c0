"""What NumPy has removed."""

import functools as _functools
import importlib as _importlib
import importlib.util as _util

from .. import _symbind
from . import note, restore


def _aliases(np):
    """Names of types and numbers."""
    types = {  # of Python's types in 1.24; np.bool, np.long and np.str mean something in some versions
        "bool": bool,
        "complex": complex,
        "float": float,
        "int": int,
        "long": int,
        "object": object,
        "str": str,
        "unicode": str,
    }
    scalars = {  # in 2.0
        "bool8": np.bool_,
        "cfloat": np.complex128,
        "complex_": np.complex128,
        "float_": np.float64,
        "int0": np.intp,
        "longcomplex": np.clongdouble,
        "longfloat": np.longdouble,
        "object0": np.object_,
        "singlecomplex": np.complex64,
        "str0": np.str_,
        "string_": np.bytes_,
        "uint0": np.uintp,
        "unicode_": np.str_,
        "void0": np.void,
    }
    infinity = float("inf")
    numbers = {
        "Inf": infinity,
        "Infinity": infinity,
        "NAN": float("nan"),
        "NINF": -infinity,
        "NZERO": -0.0,
        "NaN": float("nan"),
        "PINF": infinity,
        "PZERO": 0.0,
        "infty": infinity,
    }
    found = {**types, **scalars, **numbers}
    exceptions = getattr(np, "exceptions", None)
    for name in ("AxisError", "ComplexWarning", "ModuleDeprecationWarning", "RankWarning", "TooHardError"):
        if hasattr(exceptions, name):
            found[name] = getattr(exceptions, name)
    found["VisibleDeprecationWarning"] = getattr(exceptions, "VisibleDeprecationWarning", DeprecationWarning)
    return found


def _asfarray(np):
    def asfarray(a, dtype=np.float64):
        """An array of floats."""
        return np.asarray(a, dtype=dtype if np.issubdtype(dtype, np.inexact) else np.float64)

    return asfarray


class _PerType(dict):
    """np.cast[t] and np.nbytes[t]: a value for each type."""

    def __init__(self, np, make):
        super().__init__()
        self._np, self._make = np, make

    def __missing__(self, dtype):
        return self._make(self._np.dtype(dtype))


def _scalar_types(np):
    """np.sctypes: the types of numbers by their kind."""
    kinds = {"int": "bhilq", "uint": "BHILQ", "float": "efdg", "complex": "FDG", "others": "?OSUV"}
    return {kind: list(dict.fromkeys(np.dtype(code).type for code in codes)) for kind, codes in kinds.items()}


def _functions(np):
    """Functions, made when they are first used."""
    import math

    trapezoid = getattr(np, "trapezoid", None)
    return {
        "alen": lambda: lambda a: len(np.atleast_1d(a)),
        "alltrue": lambda: np.all,
        "asfarray": lambda: _asfarray(np),
        "asscalar": lambda: lambda a: np.asarray(a).item(),
        "byte_bounds": lambda: np.lib.array_utils.byte_bounds,
        "cast": lambda: _PerType(np, lambda dtype: lambda values: np.asarray(values).astype(dtype)),
        "cumproduct": lambda: np.cumprod,
        "disp": lambda: print,
        "find_common_type": lambda: lambda array, scalar: np.result_type(*array, *scalar),
        "in1d": lambda: lambda ar1, ar2, *args, **kwargs: np.isin(np.ravel(ar1), ar2, *args, **kwargs),
        "issubclass_": lambda: lambda a, b: isinstance(a, type) and issubclass(a, b),
        "issubsctype": lambda: np.issubdtype,
        "loads": lambda: __import__("pickle").loads,
        "mat": lambda: np.asmatrix,
        "math": lambda: math,
        "msort": lambda: _functools.partial(np.sort, axis=0),
        "nbytes": lambda: _PerType(np, lambda dtype: dtype.itemsize),
        "obj2sctype": lambda: lambda rep, default=None: np.dtype(rep).type,
        "product": lambda: np.prod,
        "rank": lambda: np.ndim,
        "round_": lambda: np.round,
        "row_stack": lambda: np.vstack,
        "safe_eval": lambda: __import__("ast").literal_eval,
        "sctypes": lambda: _scalar_types(np),
        "sometrue": lambda: np.any,
        "trapz": lambda: trapezoid,
        "typeDict": lambda: np.sctypeDict,
    }


def _constant(value):
    return lambda: value


# ---- functions that take less than they did --------------------------------------------------------------------------


def _wrapped(module, name, fallback):
    """The function; where it fails, fallback(error, args, kwargs) may return other arguments to call it with."""
    function = getattr(module, name)

    @_functools.wraps(function)
    def call(*args, **kwargs):
        while True:
            try:
                return function(*args, **kwargs)
            except (TypeError, ValueError) as error:
                other = fallback(error, args, kwargs)
                if other is None:
                    raise
            note(f"this use of {module.__name__}.{name}")
            args, kwargs = other

    setattr(module, name, call)


def _ragged(error, args, kwargs):
    """Lists of different lengths were arrays of objects before 1.24."""
    if "inhomogeneous" in str(error) and len(args) < 2 and kwargs.get("dtype") is None:
        return args, {**kwargs, "dtype": object}
    return None


def _ragged_or_copied(error, args, kwargs):
    """copy=False meant "only where it is needed" before 2.0."""
    if "avoid copy" in str(error) and kwargs.get("copy") is False:
        return args, {**kwargs, "copy": None}
    return _ragged(error, args, kwargs)


def _newshape(error, args, kwargs):
    """newshape was the older name of shape, before 2.4."""
    if isinstance(error, TypeError) and "newshape" in kwargs:
        kwargs = dict(kwargs)
        return args, {"shape": kwargs.pop("newshape"), **kwargs}
    return None


def _from_iterable(error, args, kwargs):
    """Stacks were made of any iterable before 1.16."""
    if isinstance(error, TypeError) and args and hasattr(args[0], "__next__"):
        return (list(args[0]), *args[1:]), kwargs
    return None


def _whole_number(error, args, kwargs):
    """The number of samples was a float before 1.18."""
    if isinstance(error, TypeError):
        if len(args) > 2 and isinstance(args[2], float):
            return (*args[:2], int(args[2]), *args[3:]), kwargs
        if isinstance(kwargs.get("num"), float):
            return args, {**kwargs, "num": int(kwargs["num"])}
    return None


def _normed(error, args, kwargs):
    """normed was the older name of density, before 1.24."""
    if isinstance(error, TypeError) and "normed" in kwargs:
        kwargs = dict(kwargs)
        normed = kwargs.pop("normed")
        return args, {**kwargs, "density": bool(normed) or kwargs.get("density")}
    return None


def _fromstring(np):
    """Bytes were read as numbers before 2.3."""
    function = np.fromstring

    @_functools.wraps(function)
    def fromstring(string, dtype=float, count=-1, *, sep="", **kwargs):
        if sep != "":
            return function(string, dtype, count, sep=sep, **kwargs)
        note("np.fromstring of bytes")
        raw = string.encode("latin-1") if isinstance(string, str) else string
        dtype = np.dtype(dtype)
        if count == -1 and len(raw) % dtype.itemsize:
            raise ValueError(f"{len(raw)} bytes are no whole number of elements of {dtype.itemsize} bytes")
        if count > len(raw) // dtype.itemsize:
            raise ValueError(f"{len(raw)} bytes are fewer than {count} elements of {dtype.itemsize} bytes")
        return np.frombuffer(raw, dtype, count).copy()  # a copy: the result was always writable

    np.fromstring = fromstring


def _tostring(self, order="C"):
    note("ndarray.tostring")
    return self.tobytes(order)


def _methods(np):
    """Methods of arrays: tostring until 2.3, the others until 2.0."""

    def ptp(self, axis=None, out=None, keepdims=False):
        note("ndarray.ptp")
        return np.ptp(self, axis=axis, out=out, keepdims=keepdims)

    def itemset(self, *args):
        note("ndarray.itemset")
        *index, value = args
        if len(index) == 1 and not isinstance(index[0], tuple):
            self.flat[index[0]] = value
        else:
            self[index[0] if len(index) == 1 else tuple(index)] = value

    def newbyteorder(self, new_order="S"):
        note("ndarray.newbyteorder")
        return self.view(self.dtype.newbyteorder(new_order))

    return {"tostring": _tostring, "ptp": ptp, "itemset": itemset, "newbyteorder": newbyteorder}


def _numpy(np):
    restore(np, {**{name: _constant(value) for name, value in _aliases(np).items()}, **_functions(np)})
    _wrapped(np, "array", _ragged_or_copied)
    for name in ("asanyarray", "asarray"):
        _wrapped(np, name, _ragged)
    for name in ("vstack", "hstack", "dstack", "stack", "column_stack"):
        _wrapped(np, name, _from_iterable)
    _wrapped(np, "linspace", _whole_number)
    _wrapped(np, "histogram", _normed)
    _wrapped(np, "reshape", _newshape)
    _fromstring(np)
    for name, method in _methods(np).items():
        if not hasattr(np.ndarray, name):
            _symbind._add_method(np.ndarray, name, method)
    _symbind._allow_numbers_of_arrays(np.ndarray, lambda: note("float() or int() of an array with axes"))
    _symbind._allow_lists_of_slices(np.ndarray, lambda: note("an index that is a list of slices"))
    if int(np.__version__.split(".")[0]) >= 2:
        np.set_printoptions(legacy="1.25")  # [0.5], which readers of logs expect, and not [np.float32(0.5)]


def _numpy_random(module):
    def random_integers(low, high=None, size=None):
        """Integers from low to high, both among them; or from 1 to low."""
        return module.randint(1, low + 1, size) if high is None else module.randint(low, high + 1, size)

    restore(module, {"random_integers": _constant(random_integers)})


# Modules of numpy.lib that 2.0 made private, as numpy.lib._arraysetops_impl.
_OF_LIB = (
    "arraypad",
    "arraysetops",
    "function_base",
    "histograms",
    "index_tricks",
    "nanfunctions",
    "polynomial",
    "shape_base",
    "twodim_base",
    "type_check",
    "ufunclike",
)


def _numpy_lib(module):
    def private(name):
        return lambda: _importlib.import_module(f"numpy.lib._{name}_impl")

    if _util.find_spec("numpy.lib._arraysetops_impl") is not None:
        restore(module, {name: private(name) for name in _OF_LIB})


PATCHES = {"numpy": _numpy, "numpy.lib": _numpy_lib, "numpy.random": _numpy_random}
