"""Arrays from numbers, from NumPy and from other arrays."""

import numpy as _np

from .. import _parts, _symbind
from .._symbind import MXNetTypeError, MXNetValueError, NDArray
from ._indexing import element_shape


def _shape(shape):
    return (shape,) if isinstance(shape, (int, _np.integer)) else tuple(shape)


def _require_dense(stype):
    if stype not in (None, "default"):
        raise NotImplementedError(f"arrays are dense here: there is no storage type {stype!r}")


def array(source_array, ctx=None, dtype=None):
    """An array of a list, a NumPy array or another array: of `dtype`, by default that of an NDArray, else float32."""
    if isinstance(source_array, NDArray):
        result = empty(source_array.shape, ctx, source_array.dtype if dtype is None else dtype)
        source_array.copyto(result)
        return result
    if type(source_array).__module__.startswith("scipy.sparse"):
        source_array = source_array.toarray()
    try:
        values = _np.asarray(source_array)
        if values.dtype.kind not in "biufV":
            values = values.astype(_np.float32)
    except (TypeError, ValueError) as error:
        raise MXNetTypeError(f"expected an array, or nested lists of numbers of equal lengths: {error}") from None
    result = empty(element_shape(values.shape), ctx, _np.float32 if dtype is None else dtype)
    result._copy_from_numpy(values)
    return result


def empty(shape, ctx=None, dtype=None, stype=None):
    """An array with uninitialized elements."""
    _require_dense(stype)
    return _symbind._empty(_shape(shape), ctx, _np.float32 if dtype is None else dtype)


def full(shape, val, ctx=None, dtype=_np.float32, out=None):
    """An array of one value."""
    if out is not None:
        out._fill(float(val))
        return out
    return _symbind._full(_shape(shape), float(val), ctx, _np.float32 if dtype is None else dtype)


def zeros(shape, ctx=None, dtype=None, stype=None, out=None, **kwargs):
    """An array of zeros."""
    _require_dense(stype)
    return full(shape, 0, ctx, dtype, out)


def ones(shape, ctx=None, dtype=None, out=None, **kwargs):
    """An array of ones."""
    return full(shape, 1, ctx, dtype, out)


def _made(op, ctx, dtype, **attributes):
    attributes["dtype"] = _np.float32 if dtype is None else dtype
    return _symbind._require_op(op).on_arrays((), {**attributes, "ctx": ctx})


def arange(start, stop=None, step=1.0, repeat=1, infer_range=None, ctx=None, dtype=_np.float32):
    """start, start + step, … before stop, each `repeat` times; one number is the stop."""
    stop = None if stop is None else float(stop)
    return _made("_arange", ctx, dtype, start=float(start), stop=stop, step=float(step), repeat=repeat)


def linspace(start, stop, num, endpoint=True, ctx=None, dtype=_np.float32):
    """`num` numbers evenly spaced from start to stop."""
    return _made("_linspace", ctx, dtype, start=float(start), stop=float(stop), num=num, endpoint=endpoint)


def eye(N, M=0, k=0, ctx=None, dtype=None, **kwargs):
    """Ones on a diagonal."""
    return _made("_eye", ctx, dtype, N=N, M=M or 0, k=k)


def concatenate(arrays, axis=0, always_copy=True):
    """Concatenates arrays along an axis."""
    if len(arrays) == 0:
        raise _symbind.MXNetValueError("there is nothing to concatenate")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return _symbind._concatenate(list(arrays), axis)


def moveaxis(tensor, source, destination):
    """The array with some axes moved to other positions."""

    def normalized(given, what):
        axes = [axis + tensor.ndim if axis < 0 else axis for axis in _shape(given)]
        if any(not 0 <= axis < tensor.ndim for axis in axes):
            raise MXNetValueError(f"{what} {given} is out of bounds for an array of {tensor.ndim} axes")
        if len(set(axes)) != len(axes):
            raise MXNetValueError(f"{what} {given} names an axis twice")
        return axes

    source, destination = normalized(source, "source"), normalized(destination, "destination")
    if len(source) != len(destination):
        raise MXNetValueError("expected as many destinations as sources")
    rest = [axis for axis in range(tensor.ndim) if axis not in source]
    for position, axis in sorted(zip(destination, source)):
        rest.insert(position, axis)
    return tensor.transpose(rest)


def onehot_encode(indices, out):
    """Rows of `out` become zero but for a one at each index."""
    rows = _np.arange(out.shape[0])
    values = _np.zeros(out.shape, dtype=_np.float32)
    values[rows, indices.asnumpy().astype(_np.int64)] = 1
    out[:] = values
    return out


def element_mask(lhs, rhs):
    """Each row of `lhs`, which has two or more axes, times an element of `rhs`, as in older versions of MXNet."""
    return lhs * rhs.reshape((-1,) + (1,) * (lhs.ndim - 1))


def _may_be_written(values):
    """Memory that NumPy only reads may be of the kind that ends the process when it is written: a file, a constant."""
    root = values
    while isinstance(root.base, _np.ndarray):
        root = root.base
    return values.flags.writeable or root.base is None


def _over(values, function):
    if not values.flags.c_contiguous:
        raise MXNetValueError(f"[{function}] the array shares the memory, which must be contiguous in row-major order")
    return NDArray._over_numpy(values, element_shape(values.shape))


def from_numpy(ndarray, zero_copy=True):
    """An array of NumPy's numbers, in their type.

    With zero_copy it shares memory that NumPy may then only read; numbers that are not aligned, or in read-only memory
    of another owner than NumPy, are copied all the same."""
    if not zero_copy or not ndarray.flags.aligned or not _may_be_written(ndarray):
        return array(ndarray, dtype=ndarray.dtype)
    result = _over(ndarray, "from_numpy")
    ndarray.flags.writeable = False
    return result


def from_dlpack(dlpack):
    """An array that shares the memory of another library's array, on the CPU."""
    read = getattr(_np, "from_dlpack", None) or _np._from_dlpack  # NumPy 1.22 has it under its first name
    return _over(read(dlpack if hasattr(dlpack, "__dlpack__") else _Capsule(dlpack)), "from_dlpack")


class _Capsule:
    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **kwargs):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)


def to_dlpack_for_read(data):
    """The array's memory for another library."""
    return data.__dlpack__()


def to_dlpack_for_write(data):
    """The array's memory for another library to write."""
    return data.__dlpack__()


def split_v2(ary, indices_or_sections, axis=0, squeeze_axis=False):
    """Splits along an axis: into a number of equal parts, or at indices (a tuple) where parts begin."""
    return _parts.split_v2(ary, indices_or_sections, axis, squeeze_axis, symbolic=False)


def histogram(a, bins=10, range=None):
    """The number of elements in each bin, and the edges of the bins: a number of equal bins of `range` (None: from the
    least to the largest element), or an array with the edges."""
    return _parts.histogram(a, bins, range, symbolic=False)
