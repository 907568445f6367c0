"""Batches, their description, and iterators over them."""

import os as _os
from collections import namedtuple as _namedtuple

import numpy as _np

from .._symbind import (
    CSVIter,
    DataIter,
    ImageDetRecordIter,
    LibSVMIter,
    MNISTIter,
    MXNetTypeError,
    MXNetValueError,
    NDArrayIter,
    PrefetchingIter,
    ResizeIter,
    batch_axis,
)
from .._symbind import ImageRecordIter as _ImageRecordIter
from ..ndarray import NDArray, array, load, save

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

    With `normalization` = (mean, std, scale), where mean and std have a number per channel, batches may hold pixels as
    uint8: devices that get them compute (pixel - mean) * scale / std.

    As a tuple it is (name, shape), and only these count in comparisons.
    """

    def __new__(cls, name, shape, dtype=_np.float32, layout="NCHW", normalization=None):
        desc = super().__new__(cls, name, shape)
        desc.dtype = dtype
        desc.layout = layout
        desc.normalization = normalization
        return desc

    def __repr__(self):
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    def __reduce__(self):
        return DataDesc, (self.name, self.shape, self.dtype, self.layout, self.normalization)

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
            raise MXNetTypeError(f"data must be a list of NDArrays, not {type(data).__name__}")
        if label is not None and not isinstance(label, list | tuple):
            raise MXNetTypeError(f"label must be a list of NDArrays, not {type(label).__name__}")
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
        raise MXNetValueError("at least one array is needed: none was given")
    if isinstance(data, list | tuple):
        names = [default_name] if len(data) == 1 else [f"_{i}_{default_name}" for i in range(len(data))]
        pairs = list(zip(names, data))
    elif isinstance(data, dict):
        pairs = sorted(data.items())
    else:
        raise MXNetTypeError(f"expected an array, a list of arrays or a dict of them, not {type(data).__name__}")
    return [(name, value if isinstance(value, NDArray) else array(value)) for name, value in pairs]


def ImageRecordIter(mean_img=None, **kwargs):
    """Batches of images from a RecordIO file (path_imgrec), decoded and augmented on threads of their own.

    The arguments are MXNet's; see docs/data.md. `mean_img` is a file with the mean image; if it does not exist, the
    mean is computed in one pass over the images and written there.
    """
    if mean_img:
        kwargs["mean_image"] = _mean_image(mean_img, kwargs)
    return _ImageRecordIter(**kwargs)


def _mean_image(path, kwargs):
    if not _os.path.exists(path):
        plain = {name: kwargs[name] for name in _OF_THE_FILE if name in kwargs}
        total = count = 0
        for batch in _ImageRecordIter(round_batch=False, verbose=False, **plain):
            images = batch.data[0].asnumpy()[: len(batch.index) - batch.pad]
            total = total + images.sum(axis=0, dtype=_np.float64)
            count += len(images)
        save(path, {"mean_img": array((total / count).astype(_np.float32))})
    loaded = load(path)
    return loaded["mean_img"] if isinstance(loaded, dict) else loaded[0]


# What an iterator has that reads the images as they are.
_OF_THE_FILE = ["path_imgrec", "path_imgidx", "path_imglist", "data_shape", "label_width", "batch_size", "resize"]
_OF_THE_FILE += ["inter_method", "preprocess_threads", "prefetch_buffer", "num_parts", "part_index", "skip_bad_images"]


def ImageRecordUInt8Iter(**kwargs):
    """ImageRecordIter(dtype="uint8"): the pixels as they are."""
    return ImageRecordIter(**{**kwargs, "dtype": "uint8"})


def ImageRecordInt8Iter(**kwargs):
    """ImageRecordIter(dtype="int8"): the pixels as they are, 127 at most."""
    return ImageRecordIter(**{**kwargs, "dtype": "int8"})


ImageRecordIter_v1 = ImageRecordIter
ImageRecordUInt8Iter_v1 = ImageRecordUInt8Iter
