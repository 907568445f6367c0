"""Loaders of other libraries as iterators."""

import numpy as _np

from ..io import DataDesc, DataIter
from ..ndarray import NDArray, array

__all__ = ["DataLoaderIter"]


def _as_array(value, dtype):
    if isinstance(value, NDArray):
        return value.astype(dtype)
    if hasattr(value, "numpy"):  # a tensor of PyTorch's
        value = value.numpy()
    return array(_np.asarray(value), dtype=dtype)


class DataLoaderIter(DataIter):
    """An iterator for Module over a loader of (data, label) batches: Gluon's, PyTorch's, or any iterable; the
    batch size is its `batch_size`, or that of its first batch. A smaller last batch is padded."""

    def __init__(self, loader, data_name="data", label_name="softmax_label", dtype="float32"):
        super().__init__()
        self._loader = loader
        self._iter = iter(loader)
        data, label = next(self._iter)
        data, label = _as_array(data, dtype), _as_array(label, dtype)
        self.batch_size = data.shape[0]
        self.dtype = dtype
        self.provide_data = [DataDesc(data_name, data.shape, dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, dtype)]
        self._current_batch = None
        self.reset()

    def reset(self):
        """Begins from the first batch."""
        self._iter = iter(self._loader)

    def iter_next(self):
        """Advances to the next batch; False at the end."""
        self._current_batch = next(self._iter, None)
        return self._current_batch is not None

    def _padded(self, value):
        given = _as_array(value, self.dtype)
        missing = self.batch_size - given.shape[0]
        if missing <= 0:
            return [given]
        full = array(_np.zeros((self.batch_size, *given.shape[1:])), dtype=self.dtype)
        full[: given.shape[0]] = given
        return [full]

    def getdata(self):
        """The data of the batch."""
        return self._padded(self._current_batch[0])

    def getlabel(self):
        """The labels of the batch."""
        return self._padded(self._current_batch[1])

    def getpad(self):
        """How many samples of the batch are padding."""
        return self.batch_size - self._current_batch[0].shape[0]

    def getindex(self):
        """None: loaders do not number their samples."""
        return None
