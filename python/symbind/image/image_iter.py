"""An iterator over images in a RecordIO file or in separate files, with augmenters in Python."""

import logging as _logging
import os as _os
import random as _random

import numpy as _np

from .. import _symbind, io, recordio
from .. import ndarray as nd
from .augmenters import CreateAugmenter
from .functions import imdecode

__all__ = [
    "ImageIter",
]


class ImageIter(io.DataIter):
    """Batches of images from a RecordIO file, or from files named in a list, augmented by Python functions.

    The images are in `path_imgrec` (with `path_imgidx` for shuffling and parts), or in files under `path_root` that
    `path_imglist` (lines of id, labels and path, between tabs) or `imglist` ([label, path] pairs) name. Other arguments
    go to CreateAugmenter. Where its augmentations suffice, mx.io.ImageRecordIter is many times as fast.
    """

    def __init__(
        self,
        batch_size,
        data_shape,
        label_width=1,
        path_imgrec=None,
        path_imglist=None,
        path_root=None,
        path_imgidx=None,
        shuffle=False,
        part_index=0,
        num_parts=1,
        aug_list=None,
        imglist=None,
        data_name="data",
        label_name="softmax_label",
        dtype="float32",
        last_batch_handle="pad",
        **kwargs,
    ):
        super().__init__(batch_size)
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise _symbind.MXNetValueError("ImageIter needs path_imgrec, path_imglist or imglist")
        if dtype not in ("int32", "float32", "int64", "float64", "uint8"):
            raise _symbind.MXNetValueError(f"dtype must be int32, float32, int64, float64 or uint8, not {dtype}")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise _symbind.MXNetValueError(
                f"last_batch_handle must be pad, discard or roll_over, not {last_batch_handle!r}"
            )
        if not 0 <= part_index < num_parts:
            raise _symbind.MXNetValueError(f"part_index must be between 0 and {num_parts - 1}: {part_index}")
        self.check_data_shape(data_shape)
        self.batch_size = batch_size
        self.data_shape = tuple(data_shape)
        self.label_width = label_width
        self.shuffle = shuffle
        self.dtype = dtype
        self.path_root = path_root
        self.last_batch_handle = last_batch_handle
        self._open_records(path_imgrec, path_imgidx)
        self._read_list(path_imglist, imglist)
        self._choose_part(num_parts, part_index)
        self.provide_data = [io.DataDesc(data_name, (batch_size, *self.data_shape), _np.dtype(dtype).type)]
        label_shape = (batch_size,) if label_width == 1 else (batch_size, label_width)
        self.provide_label = [io.DataDesc(label_name, label_shape)]
        self.auglist = self._create_augmenters(**kwargs) if aug_list is None else aug_list
        self.cur = 0
        self.num_image = len(self.seq) if self.seq is not None else None
        self._cache = []  # samples of a batch that rolls over
        self._at_end = False
        self.reset()

    def _create_augmenters(self, **kwargs):
        return CreateAugmenter(self.data_shape, **kwargs)

    def _open_records(self, path_imgrec, path_imgidx):
        self.imgrec = self.imgidx = None
        if not path_imgrec:
            return
        if path_imgidx:
            self.imgrec = recordio.MXIndexedRecordIO(path_imgidx, path_imgrec, "r")
            self.imgidx = list(self.imgrec.keys)
        else:
            self.imgrec = recordio.MXRecordIO(path_imgrec, "r")

    def _read_list(self, path_imglist, imglist):
        self.imglist = None
        if path_imglist:
            self.imglist = {}
            with open(path_imglist) as lines:
                for number, line in enumerate(lines, 1):
                    words = line.strip().split("\t")
                    if words == [""]:
                        continue
                    if len(words) < 3:
                        raise _symbind.MXNetValueError(
                            f"[{path_imglist}] line {number}: expected an id, labels and a path"
                        )
                    self.imglist[int(words[0])] = (_np.array(words[1:-1], dtype=_np.float32), words[-1])
        elif isinstance(imglist, list):
            self.imglist = {}
            for index, item in enumerate(imglist, 1):
                labels = item[:-1] if len(item) > 2 else _np.atleast_1d(item[0])
                self.imglist[str(index)] = (_np.array(labels, dtype=_np.float32).ravel(), item[-1])

    def _choose_part(self, num_parts, part_index):
        if self.imgrec is None or (self.imglist is not None and self.imgidx is not None):
            self.seq = list(self.imglist)
        elif self.shuffle or num_parts > 1:
            if self.imgidx is None:
                raise _symbind.MXNetValueError("shuffling and parts of a RecordIO file need path_imgidx")
            self.seq = self.imgidx
        else:
            self.seq = self.imgidx
        if num_parts > 1:
            size = len(self.seq) // num_parts
            self.seq = self.seq[part_index * size : (part_index + 1) * size]

    def reset(self):
        """Restarts; with "roll_over" the samples left from the last batch come first."""
        if self.seq is not None and self.shuffle:
            _random.shuffle(self.seq)
        if self.last_batch_handle != "roll_over" or not self._at_end:
            self._cache = []
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur = 0
        self._at_end = False

    def hard_reset(self):
        """Restarts, without samples left from the last batch."""
        self._at_end = False
        self.reset()

    def next_sample(self):
        """(label, bytes of the image) of the next one; StopIteration at the end."""
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                raise StopIteration
            header, data = recordio.unpack(record)
            return header.label, data
        if self.cur >= len(self.seq):
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            label, name = self.imglist[key]
            return label, self.read_image(name)
        header, data = recordio.unpack(self.imgrec.read_idx(key))
        return (header.label if self.imglist is None else self.imglist[key][0]), data

    def read_image(self, fname):
        """The bytes of a file under path_root."""
        with open(_os.path.join(self.path_root or "", fname), "rb") as file:
            return file.read()

    def imdecode(self, s):
        """An image from its bytes."""
        return imdecode(s)

    def augmentation_transform(self, data):
        """The image after all augmenters."""
        for aug in self.auglist:
            data = aug(data)
        return data

    def postprocess_data(self, datum):
        """(height, width, channels) as (channels, height, width)."""
        return nd.transpose(datum, axes=(2, 0, 1))

    def check_data_shape(self, data_shape):
        if len(data_shape) != 3 or data_shape[0] != 3:
            raise _symbind.MXNetValueError(f"data_shape must be (3, height, width), not {tuple(data_shape)}")

    def check_valid_image(self, data):
        if len(data[0].shape) == 0:
            raise _symbind.MXNetError("the image has no pixels")

    def _next_good_sample(self):
        """(image, label) of the next image that can be decoded; the others are reported."""
        while True:
            label, data = self.next_sample()
            try:
                image = self.imdecode(data)
                self.check_valid_image([image])
            except (RuntimeError, _symbind.MXNetError) as error:
                _logging.getLogger().warning("ImageIter leaves out an image: %s", error)
                continue
            return self.augmentation_transform(image), label

    def next(self):
        samples = self._cache
        self._cache = []
        if self._at_end:
            raise StopIteration
        pad = 0
        try:
            self._fill(samples)
        except StopIteration:
            self._at_end = True
            if not samples or self.last_batch_handle == "discard":
                raise
            if self.last_batch_handle == "roll_over":
                self._cache = samples
                raise
            pad = self.batch_size - len(samples)
            self._fill_from_the_beginning(samples)
        return self._batch_of(samples, pad)

    def _fill(self, samples):
        while len(samples) < self.batch_size:
            image, label = self._next_good_sample()
            samples.append((self.postprocess_data(image).asnumpy(), label))

    def _fill_from_the_beginning(self, samples):
        """Pads the last batch with the first samples, several times over if there are few."""
        while len(samples) < self.batch_size:
            before = len(samples)
            self.reset()
            try:
                self._fill(samples)
            except StopIteration:
                if len(samples) == before:  # nothing can be decoded any more
                    break
        self._at_end = True

    def _batch_of(self, samples, pad):
        data = _np.zeros((self.batch_size, *self.data_shape), dtype=self.dtype)
        label = _np.zeros(self.provide_label[0].shape, dtype="float32")
        for i in range(self.batch_size):
            image, labels = samples[i % len(samples)]
            if image.shape != self.data_shape:
                raise _symbind.MXNetValueError(
                    f"the augmented image has shape {image.shape}, not data_shape, {self.data_shape}"
                )
            data[i] = image
            label[i] = _np.asarray(labels, dtype="float32").reshape(label[i].shape)
        return io.DataBatch([nd.array(data, dtype=self.dtype)], [nd.array(label)], pad=pad)
