"""The basis of the checkers of test_utils: tolerances, random arrays, comparisons."""

import numbers as _numbers
import random as _random

import numpy as np

from ._symbind import MXNetTypeError
from .context import Context, current_context, num_gpus
from .ndarray import NDArray, array

_EPS = {"float16": 2.0**-6, "float32": 2.0**-9, "float64": 2.0**-14}
_RTOL = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-5}
_ATOL = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-20}
_EXACT = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")

_DOUBLE = np.dtype(np.float64)
_context = None


# ---- defaults --------------------------------------------------------------------------------------------------------


def default_context():
    """The context tests run on: the one set, else the current one."""
    return _context if _context is not None else current_context()


def set_default_context(ctx):
    """Sets the context tests run on."""
    global _context
    if ctx is not None and not isinstance(ctx, Context):
        raise MXNetTypeError(f"expected a Context, not {type(ctx).__name__}")
    _context = ctx


def default_dtype():
    """The type tests use."""
    return np.float32


def _by_dtype(table):
    return {np.dtype(name): value for name, value in table.items()} | {np.dtype(name): 0 for name in _EXACT}


def default_rtols():
    """Relative tolerance by type."""
    return _by_dtype(_RTOL)


def default_atols():
    """Absolute tolerance by type."""
    return _by_dtype(_ATOL)


def default_numeric_eps():
    """Step of finite differences by type."""
    return {np.dtype(name): value for name, value in _EPS.items()}


def effective_dtype(dat):
    """The type of an array."""
    return np.dtype(dat.dtype)


def get_tols(x, y, rtol, atol):
    """Tolerances for comparing two arrays: those given, else the larger of their types'."""
    kinds = [np.dtype(value.dtype) if hasattr(value, "dtype") else np.dtype(np.float64) for value in (x, y)]
    rtol = max(default_rtols().get(kind, 0) for kind in kinds) if rtol is None else rtol
    atol = max(default_atols().get(kind, 0) for kind in kinds) if atol is None else atol
    return rtol, atol


def get_rtol(rtol=None, dtype=_DOUBLE):
    """A relative tolerance: the one given, else the type's."""
    return default_rtols().get(np.dtype(dtype), 0) if rtol is None else rtol


def get_atol(atol=None, dtype=_DOUBLE):
    """An absolute tolerance: the one given, else the type's."""
    return default_atols().get(np.dtype(dtype), 0) if atol is None else atol


def get_etol(etol=None):
    """The share of elements that may differ: the one given, else none."""
    return 0 if etol is None else etol


def get_tolerance(dat, tol, default_tol):
    """The tolerance for an array: the number given, or the one of its type in a dict, else the default of its type."""
    if isinstance(tol, _numbers.Number):
        return tol
    kind = effective_dtype(dat)
    for table in (tol or {}, default_tol):
        for name, value in table.items():
            if np.dtype(name) == kind:
                return value
    return 0


def locationError(a, b, index, names, maxError=False):
    """Words for where two arrays differ: the index, and both values."""
    text = "maximum error" if maxError else "error"
    return f"Location of {text}: {index}, {names[0]}={a[index]:.8f}, {names[1]}={b[index]:.8f}"


def list_gpus():
    """The numbers of the GPUs."""
    return range(num_gpus())


# ---- random things ---------------------------------------------------------------------------------------------------


def rand_shape_nd(num_dim, dim=10, allow_zero_size=False):
    """A shape of random dimensions up to `dim`."""
    return tuple(np.random.randint(0 if allow_zero_size else 1, dim + 1, size=num_dim).tolist())


def rand_shape_2d(dim0=10, dim1=10, allow_zero_size=False):
    """A random shape of two dimensions."""
    least = 0 if allow_zero_size else 1
    return tuple(int(np.random.randint(least, dim + 1)) for dim in (dim0, dim1))


def rand_shape_3d(dim0=10, dim1=10, dim2=10, allow_zero_size=False):
    """A random shape of three dimensions."""
    least = 0 if allow_zero_size else 1
    return tuple(int(np.random.randint(least, dim + 1)) for dim in (dim0, dim1, dim2))


def random_arrays(*shapes):
    """NumPy arrays of normal numbers; a single one comes bare."""
    arrays = [np.asarray(np.random.randn(*shape), dtype=default_dtype()) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes, **kwargs):
    """NumPy arrays of uniform numbers from `low` to `high`, of type `dtype`."""
    low, high = kwargs.pop("low", 0.0), kwargs.pop("high", 1.0)
    kind = kwargs.pop("dtype", default_dtype())
    return [np.random.uniform(low, high, size=shape).astype(kind) for shape in shapes]


def random_sample(population, k):
    """k of the elements, in their order."""
    return [population[index] for index in sorted(_random.sample(range(len(population)), k))]


def rand_ndarray(
    shape,
    stype="default",
    density=None,
    dtype=None,
    modifier_func=None,
    shuffle_csr_indices=False,
    distribution=None,
    ctx=None,
):
    """An array of normal numbers."""
    if stype != "default":
        raise NotImplementedError(f"arrays are dense here: there is no storage type {stype!r}")
    values = np.asarray(np.random.standard_normal(shape))
    if modifier_func is not None:
        values = assign_each(values, modifier_func)
    return array(values, ctx=ctx, dtype=default_dtype() if dtype is None else dtype)


def assign_each(the_input, function):
    """A function applied to each element."""
    return np.vectorize(function)(the_input) if function is not None else np.array(the_input)


def assign_each2(input1, input2, function):
    """A function applied to each pair of elements."""
    return np.vectorize(function)(input1, input2) if function is not None else np.array(input1)


def create_vector(size, dtype=np.int64):
    """0, 1, … as an array."""
    return array(np.arange(size), dtype=dtype)


def create_2d_tensor(rows, columns, dtype=np.int64):
    """Rows filled with their number."""
    return array(np.repeat(np.arange(rows)[:, None], columns, axis=1), dtype=dtype)


# ---- comparisons -----------------------------------------------------------------------------------------------------


def _as_numpy(value):
    return value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)


def same(a, b):
    """Whether two arrays have equal elements."""
    return np.array_equal(_as_numpy(a), _as_numpy(b))


def same_array(array1, array2):
    """Whether two NDArrays are one memory: a change of one shows in the other."""
    before = array1.asnumpy()
    array1[:] = before + 1
    if not same(array1, array2):
        array1[:] = before
        return False
    array1[:] = before
    return same(array1, array2)


def checkShapes(a, b):
    """AssertionError where shapes differ."""
    assert a.shape == b.shape, f"the shapes {a.shape} and {b.shape} differ"


def almost_equal(a, b, rtol=None, atol=None, equal_nan=False, use_broadcast=True):
    """Whether two arrays agree within |a - b| <= atol + rtol·|b|."""
    a, b = _as_numpy(a), _as_numpy(b)
    if not use_broadcast:
        checkShapes(a, b)
    rtol, atol = get_tols(a, b, rtol, atol)
    return bool(np.allclose(_exact(a), _exact(b), rtol=rtol, atol=atol, equal_nan=equal_nan))


def _exact(values):
    return values.astype(np.float64) if values.dtype in (np.float16, np.float32) else values


def assert_almost_equal(
    a, b, rtol=None, atol=None, names=("a", "b"), equal_nan=False, use_broadcast=True, mismatches=(10, 10)
):
    """AssertionError with the indices and sizes of the worst differences where two arrays do not agree."""
    a, b = _as_numpy(a), _as_numpy(b)
    rtol, atol = get_tols(a, b, rtol, atol)
    if almost_equal(a, b, rtol, atol, equal_nan, use_broadcast):
        return
    left, right = np.broadcast_arrays(np.asarray(_exact(a), np.float64), np.asarray(_exact(b), np.float64))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        allowed = atol + rtol * np.abs(right)
        off = ~(np.abs(left - right) <= allowed) & ~(left == right)
        if equal_nan:
            off &= ~(np.isnan(left) & np.isnan(right))
        ratio = np.where(off, np.abs(left - right) / np.maximum(allowed, np.finfo(np.float64).tiny), 0)
    worst = np.argsort(np.where(np.isnan(ratio), np.inf, ratio), axis=None)[::-1][: max(1, mismatches[0])]
    lines = [f"{off.sum()} of {off.size} elements differ by more than rtol={rtol:g}, atol={atol:g}:"]
    for flat in worst:
        at = np.unravel_index(flat, off.shape)
        if off[at]:
            where = tuple(int(index) for index in at)
            lines.append(f"  at {where}: {names[0]}={left[at]:.8g}, {names[1]}={right[at]:.8g}")
    raise AssertionError("\n".join(lines))


def assert_allclose(a, b, rtol=1e-07, atol=0, equal_nan=True):
    """assert_almost_equal with NumPy's tolerances."""
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(
    a, b, rtol=None, atol=None, etol=None, names=("a", "b"), equal_nan=False, mismatches=(10, 10)
):
    """As assert_almost_equal, but a part `etol` of the elements may differ."""
    a, b = _as_numpy(a), _as_numpy(b)
    if etol:
        tols = get_tols(a, b, rtol, atol)
        off = ~np.isclose(_exact(a), _exact(b), rtol=tols[0], atol=tols[1], equal_nan=equal_nan)
        assert off.mean() <= etol, f"{off.sum()} of {off.size} elements differ, more than a part of {etol:g}"
    else:
        assert_almost_equal(a, b, rtol, atol, names, equal_nan, mismatches=mismatches)


def _without_nan(a, b):
    a, b = np.array(_as_numpy(a)), np.array(_as_numpy(b))
    either = np.isnan(a) | np.isnan(b)
    a[either] = b[either] = 0
    return a, b


def almost_equal_ignore_nan(a, b, rtol=None, atol=None):
    """almost_equal of the elements that are numbers in both."""
    return almost_equal(*_without_nan(a, b), rtol, atol)


def assert_almost_equal_ignore_nan(a, b, rtol=None, atol=None, names=("a", "b")):
    """assert_almost_equal of the elements that are numbers in both."""
    assert_almost_equal(*_without_nan(a, b), rtol, atol, names)


def assert_exception(f, exception_type, *args, **kwargs):
    """AssertionError unless f(*args, **kwargs) raises that type."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{exception_type.__name__} was not raised by {getattr(f, '__name__', f)}")


def compare_ndarray_tuple(t1, t2, rtol=None, atol=None):
    """Compares nested tuples of arrays, such as optimizer states."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple | list):
        for left, right in zip(t1, t2):
            compare_ndarray_tuple(left, right, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def np_reduce(dat, axis, keepdims, numpy_reduce_func):
    """A reduction by NumPy over an axis, several, or all (None)."""
    if axis is None:
        axes = list(range(dat.ndim))
    else:
        axes = [axis] if isinstance(axis, int) else list(axis)
    result = dat
    for one in sorted((each % dat.ndim for each in axes), reverse=True):
        result = numpy_reduce_func(result, axis=one)
    if keepdims:
        reduced = {each % dat.ndim for each in axes}
        result = np.reshape(result, [1 if i in reduced else dim for i, dim in enumerate(dat.shape)])
    return result


def collapse_sum_like(a, shape):
    """A broadcast result summed back to a shape."""
    extra = a.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, dim in enumerate(shape) if dim == 1 and a.shape[i + extra] != 1)
    return np.sum(a, axis=axes).reshape(shape) if axes else a
