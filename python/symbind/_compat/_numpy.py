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


def _functions(np):
    """Functions, made when they are first used."""
    import math

    trapezoid = getattr(np, "trapezoid", None)
    return {
        "alen": lambda: lambda a: len(np.atleast_1d(a)),
        "alltrue": lambda: np.all,
        "asfarray": lambda: _asfarray(np),
        "asscalar": lambda: lambda a: np.asarray(a).item(),
        "cumproduct": lambda: np.cumprod,
        "find_common_type": lambda: lambda array, scalar: np.result_type(*array, *scalar),
        "in1d": lambda: lambda ar1, ar2, *args, **kwargs: np.isin(np.ravel(ar1), ar2, *args, **kwargs),
        "issubclass_": lambda: lambda a, b: isinstance(a, type) and issubclass(a, b),
        "issubsctype": lambda: lambda a, b: issubclass(np.dtype(a).type, np.dtype(b).type),
        "loads": lambda: __import__("pickle").loads,
        "mat": lambda: np.asmatrix,
        "math": lambda: math,
        "msort": lambda: _functools.partial(np.sort, axis=0),
        "product": lambda: np.prod,
        "rank": lambda: np.ndim,
        "round_": lambda: np.round,
        "row_stack": lambda: np.vstack,
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
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError) as error:
            other = fallback(error, args, kwargs)
            if other is None:
                raise
        note(f"this use of {module.__name__}.{name}")
        return function(*other[0], **other[1])

    setattr(module, name, call)


def _ragged(error, args, kwargs):
    """Lists of different lengths were arrays of objects before 1.24."""
    if "inhomogeneous" in str(error) and len(args) < 2 and kwargs.get("dtype") is None:
        return args, {**kwargs, "dtype": object}
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


def _numpy(np):
    restore(np, {**{name: _constant(value) for name, value in _aliases(np).items()}, **_functions(np)})
    for name in ("array", "asanyarray", "asarray"):
        _wrapped(np, name, _ragged)
    for name in ("vstack", "hstack", "dstack", "stack", "column_stack"):
        _wrapped(np, name, _from_iterable)
    _wrapped(np, "linspace", _whole_number)
    _wrapped(np, "histogram", _normed)
    _fromstring(np)
    if not hasattr(np.ndarray, "tostring"):  # in 2.3
        _symbind._add_method(np.ndarray, "tostring", _tostring)
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
