"""Indexing as NumPy does it. An int or a slice on the first axis is a view of the same memory. Everything else is a
copy, made by NumPy over the array's own memory; a result without axes keeps one of length 1, unless
shapes have NumPy's meaning (`mx.util.np_shape`)."""

import numpy as _np

from .._symbind import MXNetIndexError, MXNetTypeError, NDArray, _uses_numpy_shapes


def _numpy_key(key):
    """The key with arrays as NumPy's integers or truths, and whether it has any."""
    if isinstance(key, tuple):
        return tuple(_numpy_key(part) for part in key)
    if isinstance(key, NDArray):
        values = key.asnumpy()
        return values if values.dtype == _np.bool_ else values.astype(_np.int64)
    if isinstance(key, list):
        return [_numpy_key(part) for part in key]
    return key


def element_shape(shape):
    """A shape as results have it: without axes only by NumPy's convention."""
    return shape if shape or _uses_numpy_shapes() else (1,)


def _row(self, index):
    if self.ndim <= 1:
        length = self.shape[0] if self.ndim else 1
        at = index + length if index < 0 else index
        if not 0 <= at < length:
            raise MXNetIndexError(f"index {index} is out of bounds for an axis of length {length}")
        row = self._slice(at, at + 1) if self.ndim else self
        return row.reshape(()) if _uses_numpy_shapes() else row
    length = self.shape[0]
    if not -length <= index < length:
        raise MXNetIndexError(f"index {index} is out of bounds for an axis of length {length}")
    return self._at(index + length if index < 0 else index)


def _host_view(self):
    return self._numpy_view() if self.context.device_type != "gpu" else self.asnumpy()


def get(self, key):
    """a[key]"""
    if isinstance(key, (int, _np.integer)) and not isinstance(key, bool):
        return _row(self, int(key))
    if isinstance(key, slice) and key.step in (None, 1) and self.ndim > 0:
        start, stop, _ = key.indices(self.shape[0])
        return self._slice(start, max(start, stop))
    if key is Ellipsis or (isinstance(key, tuple) and len(key) == 0):
        return self._slice(0, self.shape[0]) if self.ndim else self
    return _copy(self, key)


def _copy(self, key):
    from ._creation import empty

    try:
        values = _np.asarray(_host_view(self)[_numpy_key(key)])
    except IndexError as error:
        raise MXNetIndexError(str(error)) from None
    result = empty(element_shape(values.shape), self.context, self.dtype)
    if self.dtype == "bfloat16":
        # the view shows the bits
        target = _host_view(result)
        target[...] = values
    else:
        result._copy_from_numpy(values)
    return result


def put(self, key, value):
    """a[key] = value, broadcast as NumPy does."""
    everything = isinstance(key, slice) and key == slice(None) or key is Ellipsis
    if everything and isinstance(value, NDArray) and value.shape == self.shape:
        if not value._same_memory(self):
            value.copyto(self)
        return
    if everything and isinstance(value, (int, float)):
        self._fill(float(value))
        return
    if isinstance(value, NDArray):
        value = value.asnumpy()
    if isinstance(value, _np.ndarray) and value.size == 1:
        value = value.reshape(())  # a single element has an axis here, and a[0, 0] += 1 assigns one
    if self.dtype == "bfloat16":
        exact = self.astype("float32")
        put(exact, key, value)
        exact.copyto(self)
        return
    view = _host_view(self)
    if isinstance(value, str):
        raise MXNetTypeError(f"an array's elements are numbers, not the text {value!r}")
    try:
        view[_numpy_key(key)] = value
    except IndexError as error:
        raise MXNetIndexError(str(error)) from None
    if self.context.device_type == "gpu":
        self._copy_from_numpy(view)


def rows(self):
    """Along the first axis."""
    if self.ndim == 0:
        raise MXNetTypeError("an array without axes cannot be iterated over")
    for index in range(self.shape[0]):
        yield _row(self, index)
