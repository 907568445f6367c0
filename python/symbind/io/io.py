"""Batches, their description, and iterators over them."""

from collections import namedtuple as _namedtuple

import numpy as _np

from .._symbind import (
    CSVIter,
    DataIter,
    LibSVMIter,
    MNISTIter,
    NDArrayIter,
    PrefetchingIter,
    ResizeIter,
    batch_axis,
)
from ..ndarray import NDArray, array

__all__ = [
    "CSVIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordUInt8Iter",
    "ImageRecordUInt8Iter_v1",
    "LibSVMIter",
    "MNISTIter",
    "MXDataIter",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]

MXDataIter = DataIter  # in MXNet, the class of iterators written in C++


class DataDesc(_namedtuple("DataDesc", ["name", "shape"])):
    """One input: its name and the shape of a whole batch; further its type, and the layout of its axes.

    As a tuple it is (name, shape), and only these count in comparisons.
    """

    def __new__(cls, name, shape, dtype=_np.float32, layout="NCHW"):
        desc = super().__new__(cls, name, shape)
        desc.dtype = dtype
        desc.layout = layout
        return desc

    def __repr__(self):
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    def __reduce__(self):
        return DataDesc, (self.name, self.shape, self.dtype, self.layout)

    @staticmethod
    def get_batch_axis(layout):
        """The position of N: 0 without a layout, -1 if the layout has none, so that the array is not split."""
        return batch_axis(layout)

    @staticmethod
    def get_list(shapes, types):
        """Descriptions of (name, shape) pairs, with types from (name, type) pairs if there are any."""
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        types = dict(types)
        return [DataDesc(name, shape, types[name]) for name, shape in shapes]


class DataBatch:
    """Arrays of one step, in the order of the iterator's descriptions; `pad` samples at the end only fill it up."""

    def __init__(self, data, label=None, pad=None, index=None, bucket_key=None, provide_data=None, provide_label=None):
        if data is not None and not isinstance(data, list | tuple):
            raise AssertionError(f"data must be a list of NDArrays, not {type(data).__name__}")
        if label is not None and not isinstance(label, list | tuple):
            raise AssertionError(f"label must be a list of NDArrays, not {type(label).__name__}")
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __str__(self):
        data = [array.shape for array in self.data]
        label = [array.shape for array in self.label] if self.label else None
        return f"DataBatch: data shapes: {data} label shapes: {label}"


def _init_data(data, allow_empty, default_name):
    """Arrays given as one, a list or a dict, as a list of (name, NDArray) pairs."""
    if data is None:
        data = []
    if isinstance(data, _np.ndarray | NDArray):
        data = [data]
    if not allow_empty and not data:
        raise ValueError("at least one array is needed: none was given")
    if isinstance(data, list | tuple):
        names = [default_name] if len(data) == 1 else [f"_{i}_{default_name}" for i in range(len(data))]
        pairs = list(zip(names, data))
    elif isinstance(data, dict):
        pairs = sorted(data.items())
    else:
        raise TypeError(f"expected an array, a list of arrays or a dict of them, not {type(data).__name__}")
    return [(name, value if isinstance(value, NDArray) else array(value)) for name, value in pairs]


def _later(name):
    def iterator(*args, **kwargs):
        raise NotImplementedError(f"mx.io.{name} is not part of Symbind yet: it comes with the iterators over files.")

    iterator.__name__ = iterator.__qualname__ = name
    iterator.__doc__ = "Not part of Symbind yet."
    return iterator


ImageRecordIter = _later("ImageRecordIter")
ImageRecordIter_v1 = _later("ImageRecordIter_v1")
ImageRecordUInt8Iter = _later("ImageRecordUInt8Iter")
ImageRecordUInt8Iter_v1 = _later("ImageRecordUInt8Iter_v1")
ImageRecordInt8Iter = _later("ImageRecordInt8Iter")
ImageDetRecordIter = _later("ImageDetRecordIter")
