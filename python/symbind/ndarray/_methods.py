"""What NDArray has in Python beyond its C++ methods: indexing, text, pickling, and operators as methods."""

import struct as _struct

import numpy as _np

from .. import _parts, _symbind
from .._functions import with_numpy_number
from . import _creation, _indexing

# Operators that are methods too: a.sum(axis=1) is sum(a, axis=1).
FLUENT = """
abs arccos arccosh arcsin arcsinh arctan arctanh argmax argmax_channel argmin argsort broadcast_axes broadcast_axis
broadcast_like broadcast_to cbrt ceil clip cos cosh degrees depth_to_space diag erf exp expand_dims expm1 fix flatten
flip floor log log10 log1p log2 log_softmax max mean min nanprod nansum norm one_hot ones_like pad pick prod radians
rcbrt reciprocal relu repeat reshape_like rint round rsqrt shape_array sigmoid sign sin sinh size_array slice
slice_axis slice_like softmax softmin sort space_to_depth split sqrt square squeeze sum swapaxes take tan
tanh tile topk trunc zeros_like
""".split()


def fluent(name, symbolic):
    """The operator as a method: its first input is the object itself."""

    def method(self, *args, **kwargs):
        op = _symbind._require_op(name)
        return (op.on_symbols if symbolic else op.on_arrays)((self, *args), kwargs)

    method.__name__ = name
    method.__qualname__ = f"{'Symbol' if symbolic else 'NDArray'}.{name}"
    method.__doc__ = f"The operator {name} on this {'symbol' if symbolic else 'array'}."
    return method


def install_fluent(cls, symbolic):
    """Makes methods of those operators that the registry has; others are no attributes."""
    for name in FLUENT:
        if _symbind._find_op(name) is not None:
            setattr(cls, name, fluent(name, symbolic))

    def split_v2(self, *args, **kwargs):
        """Splits along an axis: into a number of equal parts, or at indices (a tuple) where parts begin."""
        return _parts.split_v2(self, *args, symbolic=symbolic, **kwargs)

    cls.split_v2 = split_v2


def _repr(self):
    dims = "x".join(str(dim) for dim in self.shape)
    return f"\n{self.asnumpy()}\n<NDArray {dims} @{self.context}>"


def _reshape(self, *shape, **kwargs):
    """A view of another shape: 0 keeps a dimension, -1 infers one, -2 takes the rest, -3 merges two, -4 splits one."""
    if len(shape) == 1 and not isinstance(shape[0], (int, _np.integer)):
        shape = tuple(shape[0])
    elif not shape:
        shape = kwargs.pop("shape")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
    reverse = kwargs.pop("reverse", False)
    if kwargs:
        raise _symbind.MXNetTypeError(f"reshape takes shape and reverse, not {', '.join(kwargs)}")
    return self._reshape_reversed(shape) if reverse else self._reshape(shape)


def _transpose(self, *order, axes=None, **kwargs):
    """The array with its axes in another order; reversed without one."""
    if len(order) == 1 and not isinstance(order[0], (int, _np.integer)):
        order = order[0]
    elif not order:
        order = axes
    if order is not None:
        kwargs["axes"] = tuple(order)
    return _symbind._require_op("transpose").on_arrays((self,), kwargs)


def _broadcast_to(self, shape):
    """The array repeated along its axes of length 1, and along new ones in front, to fill a shape."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    new_axes = max(0, len(shape) - self.ndim)
    if any(length == 0 for length in shape[:new_axes]):
        raise _symbind.MXNetValueError(f"0 keeps the length of an axis, but the new ones in {shape} have none")
    if any(new not in (0, old) and old != 1 for new, old in zip(shape[new_axes:], self.shape)) or self.ndim > len(
        shape
    ):
        raise _symbind.MXNetValueError(f"only axes of length 1 can be repeated: {self.shape} to {shape}")
    array = self.reshape((1,) * new_axes + self.shape) if new_axes else self
    return _symbind._require_op("broadcast_to").on_arrays((array,), {"shape": shape})


def _array_ufunc(self, ufunc, method, *inputs, **kwargs):
    """What NumPy's functions do with an array: np.exp(a) takes its values, np.float32(2) * a is our own operator."""
    if method == "__call__" and len(inputs) == 1 and not kwargs:
        return ufunc(self.asnumpy())
    result = with_numpy_number(type(self), ufunc, method, inputs, kwargs)
    if result is None:
        raise _symbind.MXNetTypeError(
            f"np.{ufunc.__name__} does not mix NDArrays and NumPy arrays: turn one into the other, with "
            "mx.nd.array(values) or asnumpy()"
        )
    return result


def _array(self, dtype=None, copy=None):
    values = self.asnumpy()
    return values if dtype is None else values.astype(dtype)


def _restore(values, dtype, context):
    from ._creation import array

    if context.device_type == "gpu" and context.device_id >= _symbind.num_gpus():
        context = _symbind.cpu()
    return array(values, context, dtype)


def _reduce(self):
    return _restore, (self.asnumpy(), self.dtype, self.context)


def _set_state(self, state):
    """The contents from a pickle of MXNet's, which holds one array as a .params file does."""
    raw = state.get("handle")
    if raw is None:
        raise _symbind.MXNetValueError("the pickle holds an NDArray without contents")
    header = _struct.pack("<QQQ", 0x112, 0, 1)  # the kind of file, a reserved number, one array
    (array,) = _symbind.load_frombuffer(header + bytes(raw) + _struct.pack("<Q", 0))
    self._become(array)


def _expand_dims(self, axis, inplace=False, **kwargs):
    """The array with a new axis of length 1; `inplace`: a view of the same memory."""
    if not inplace:
        return _symbind._require_op("expand_dims").on_arrays((self,), {"axis": axis, **kwargs})
    if not -self.ndim - 1 <= axis <= self.ndim:
        raise _symbind.MXNetValueError(f"axis {axis} is out of range for a new one in an array of {self.ndim} axes")
    shape = list(self.shape)
    shape.insert(axis + self.ndim + 1 if axis < 0 else axis, 1)
    return self._reshape(shape)


def _squeeze(self, axis=None, inplace=False, **kwargs):
    """The array without axes of length 1, or without those given; `inplace`: a view of the same memory."""
    if not inplace:
        attributes = kwargs if axis is None else {"axis": axis, **kwargs}
        return _symbind._require_op("squeeze").on_arrays((self,), attributes)
    axes = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    dropped = set()
    for each in axes:
        if not -self.ndim <= each < self.ndim:
            raise _symbind.MXNetValueError(f"there is no axis {each} in an array of {self.ndim} axes")
        if axis is not None and self.shape[each] != 1:
            raise _symbind.MXNetValueError(
                f"axis {each} has length {self.shape[each]}: only axes of length 1 can be squeezed away"
            )
        if self.shape[each] == 1:
            dropped.add(each % self.ndim)
    left = [length for index, length in enumerate(self.shape) if index not in dropped]
    return self._reshape(left or [1])


def _flatten(self, inplace=False, **kwargs):
    """The array as a matrix, with all axes but the first in one; `inplace`: a view of the same memory."""
    return self._reshape((0, -1)) if inplace else _symbind._require_op("Flatten").on_arrays((self,), kwargs)


def _diag(self, k=0, **kwargs):
    """The operator diag on this array."""
    return _symbind._require_op("diag").on_arrays((self,), {"k": k, **kwargs})


def _broadcast_like(self, other, **kwargs):
    """The operator broadcast_like on this array."""
    return _symbind._require_op("broadcast_like").on_arrays((self, other), kwargs)


def _sliced(self, begin, end, step):
    if len(begin) > self.ndim or len(end) != len(begin) or len(step or begin) != len(begin):
        raise _symbind.MXNetValueError(
            f"begin, end and step have one number per axis of {self.shape}, not {begin}, {end}, {step}"
        )
    return tuple(slice(*bounds) for bounds in zip(begin, end, step or [None] * len(begin)))


def _slice_assign(self, rhs, begin, end, step):
    """Writes an array into a region; returns this array."""
    self[_sliced(self, begin, end, step)] = rhs
    return self


def _slice_assign_scalar(self, value, begin, end, step):
    """Writes a number into a region; returns this array."""
    self[_sliced(self, begin, end, step)] = value
    return self


def _full(self, value):
    """Fills the array; MXNet's name for it."""
    self._fill(float(value))


def _sync_copyfrom(self, source_array):
    """Copies NumPy's numbers into the array; MXNet's name for it."""
    values = _np.asarray(source_array)
    if values.shape != self.shape:
        raise _symbind.MXNetValueError(f"the array has shape {self.shape}, and the values have {values.shape}")
    self._copy_from_numpy(values)


def _imod(self, other):
    self[:] = self % other
    return self


def _to_dlpack_for_read(self):
    """The array's memory for another library."""
    return _creation.to_dlpack_for_read(self)


def _to_dlpack_for_write(self):
    """The array's memory for another library to write."""
    return _creation.to_dlpack_for_write(self)


def _as_nd(self):
    return self


def _detach(self):
    return self


def _tostype(self, stype):
    """The array itself for "default"; arrays are dense here."""
    if stype != "default":
        raise _symbind.MXNetError(f"arrays are dense here: there is no storage type '{stype}'")
    return self


_NO_AUTOGRAD = "automatic differentiation of array code is not part of Symbind: bind a Symbol instead"


def _attach_grad(self, grad_req="write", stype=None):
    """Automatic differentiation of array code is not part of Symbind: bind a Symbol."""
    raise NotImplementedError(_NO_AUTOGRAD)


def _backward(self, out_grad=None, retain_graph=False, train_mode=True):
    """Automatic differentiation of array code is not part of Symbind: bind a Symbol."""
    raise NotImplementedError(_NO_AUTOGRAD)


def install(cls):
    """Completes the C++ class."""
    install_fluent(cls, symbolic=False)
    cls.__getitem__ = _indexing.get
    cls.__setitem__ = _indexing.put
    cls.__iter__ = _indexing.rows
    cls.__repr__ = cls.__str__ = _repr
    cls.reshape = _reshape
    cls.transpose = _transpose
    cls.broadcast_to = _broadcast_to
    cls.T = property(lambda self: self.transpose())
    cls.stype = property(lambda self: "default")
    cls.grad = property(lambda self: None)
    cls.handle = property(lambda self: self)
    cls.__array__ = _array
    cls.__array_ufunc__ = _array_ufunc
    cls.__reduce__ = _reduce
    cls.__copy__ = cls.__deepcopy__ = lambda self, memo=None: self.copy()
    cls.__abs__ = lambda self: self.abs()
    cls.as_nd_ndarray = _as_nd
    cls.detach = _detach
    cls.to_dlpack_for_read = _to_dlpack_for_read
    cls.to_dlpack_for_write = _to_dlpack_for_write
    cls.tostype = _tostype
    cls.attach_grad = _attach_grad
    cls.backward = _backward
    cls.expand_dims = _expand_dims
    cls.squeeze = _squeeze
    cls.flatten = _flatten
    cls.diag = _diag
    cls.broadcast_like = _broadcast_like
    cls.slice_assign = _slice_assign
    cls.slice_assign_scalar = _slice_assign_scalar
    cls.writable = property(lambda self: True, doc="Whether the array may be written to: every one may.")
    cls._full = _full
    cls._sync_copyfrom = _sync_copyfrom
    cls.__setstate__ = _set_state
    cls.__imod__ = _imod
    install_python2_names(cls, cls.__itruediv__)


def install_python2_names(cls, in_place):
    """The names that Python 2 called operators by; scripts call them themselves, and subclasses override them."""
    cls.__div__ = cls.__truediv__
    cls.__rdiv__ = cls.__rtruediv__
    cls.__idiv__ = in_place
    cls.__nonzero__ = cls.__bool__
