"""RecordIO: files of records, in which image sets are stored."""

import os as _os
import struct as _struct
from collections import namedtuple as _namedtuple
from numbers import Number as _Number

import numpy as _np

from . import _symbind
from .ndarray import array as _array

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]

# A header in a record: flag, label, id and id2, as the module struct names them.
_IR_FORMAT = "IfQQ"
_IR_SIZE = _struct.calcsize(_IR_FORMAT)

IRHeader = _namedtuple("HEADER", ["flag", "label", "id", "id2"])
IRHeader.__doc__ = "What precedes an image in its record: the number of labels, the label or labels, and two numbers."


class MXRecordIO:
    """Reads (flag 'r') or writes ('w') a RecordIO file, one record after the other.

    A reader may be pickled, and used after a fork: it begins at the first record there. A writer belongs to the process
    that opened it.
    """

    def __init__(self, uri, flag):
        self.uri = _os.fspath(uri)
        self.flag = flag
        self.handle = None
        self.pid = None
        self.is_open = False
        self.open()

    def open(self):
        """Opens the file; a writer begins a new one."""
        if self.flag not in ("r", "w"):
            raise _symbind.MXNetValueError(f"flag must be 'r' or 'w', not {self.flag!r}")
        self.writable = self.flag == "w"
        self.handle = (_symbind.RecordWriter if self.writable else _symbind.RecordReader)(self.uri)
        self.pid = _os.getpid()
        self.is_open = True

    def close(self):
        """Closes the file; without effect if it is closed."""
        if not self.is_open:
            return
        self.is_open = False
        self.pid = None
        if self.writable:
            self.handle.close()
        self.handle = None

    def reset(self):
        """Back to the first record. A writer loses what it has written."""
        self.close()
        self.open()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self):
        # A fork's copy of a writer has the same unwritten bytes as the original, which alone may write them.
        if getattr(self, "is_open", False) and self.pid == _os.getpid():
            self.close()

    def __getstate__(self):
        if self.is_open and self.writable:
            raise _symbind.MXNetError(f"[{self.uri}] a writer cannot be pickled: close it first")
        state = self.__dict__.copy()
        state["handle"] = None
        return state

    def __setstate__(self, state):
        self.__dict__ = state
        if self.is_open:
            self.is_open = False
            self.open()

    def _reader(self):
        assert not self.writable, f"[{self.uri}] is open for writing: it cannot be read"
        self._require_open()
        if self.pid != _os.getpid():
            self.reset()
        return self.handle

    def _writer(self):
        assert self.writable, f"[{self.uri}] is open for reading: it cannot be written"
        self._require_open()
        if self.pid != _os.getpid():
            raise _symbind.MXNetError(
                f"[{self.uri}] belongs to the process that opened it, and cannot be written in a fork"
            )
        return self.handle

    def _require_open(self):
        if not self.is_open:
            raise _symbind.MXNetValueError(f"[{self.uri}] is closed: reset() opens it again")

    def write(self, buf):
        """Writes one record, bytes."""
        self._writer().write(bytes(buf))

    def read(self):
        """The next record as bytes; None at the end of the file."""
        return self._reader().read()


class MXIndexedRecordIO(MXRecordIO):
    """A RecordIO file whose records are found by their keys, through an index beside it."""

    def __init__(self, idx_path, uri, flag, key_type=int):
        self.idx_path = _os.fspath(idx_path)
        self.key_type = key_type
        self.idx = {}
        self.keys = []
        self.fidx = None
        super().__init__(uri, flag)

    def open(self):
        super().open()
        self.idx = {}
        self.keys = []
        if self.writable:
            self.fidx = open(self.idx_path, "w")
            return
        for key, offset in self._read_index():
            self.idx[key] = offset
            self.keys.append(key)

    def _read_index(self):
        if self.key_type is int:
            return _symbind.read_record_index(self.idx_path)
        with open(self.idx_path) as lines:
            pairs = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
        return [(self.key_type(key), int(offset)) for key, offset in pairs]

    def close(self):
        super().close()
        if self.fidx is not None:
            self.fidx.close()
            self.fidx = None

    def seek(self, idx):
        """Makes the record with this key the next that read() returns."""
        self._reader().seek(self.idx[idx])

    def tell(self):
        """The offset at which the next record will be written."""
        return self._writer().tell()

    def read_idx(self, idx):
        """The record with this key."""
        self.seek(idx)
        record = self.read()
        if record is None:
            raise _symbind.MXNetValueError(
                f"[{self.uri}] ends before offset {self.idx[idx]}, where {self.idx_path} says that "
                f"record {idx} is: the index is of another file, or this one was cut off"
            )
        return record

    def write_idx(self, idx, buf):
        """Writes one record, and its key into the index."""
        key = self.key_type(idx)
        offset = self.tell()
        self.write(buf)
        self.fidx.write(f"{key}\t{offset}\n")
        self.idx[key] = offset
        self.keys.append(key)


def pack(header, s):
    """A record of a header and bytes. Several labels are a list or an array; flag becomes their number."""
    header = IRHeader(*header)
    if isinstance(header.label, _Number):
        return _symbind.pack_record(float(header.label), [], header.id, header.id2, s)
    labels = _np.asarray(header.label, dtype=_np.float32).ravel()
    return _symbind.pack_record(0.0, labels.tolist(), header.id, header.id2, s)


def unpack(s):
    """The header of a record, and the bytes after it."""
    flag, label, id1, id2, data = _symbind.unpack_record(s)
    return IRHeader(flag, label, id1, id2), data


def pack_img(header, img, quality=95, img_fmt=".jpg"):
    """A record of a header and an encoded image: (height, width) or (height, width, 3), blue first as in OpenCV.

    `img_fmt` is .jpg, .jpeg or .png; `quality` is JPEG's (0 to 100) or PNG's compression (0 to 9).
    """
    pixels = img.asnumpy() if hasattr(img, "asnumpy") else _np.asarray(img)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if img_fmt.lower() == ".png":
        quality = min(quality, 9)
    return pack(header, _symbind.imencode(_array(pixels, dtype="uint8"), img_fmt, quality, False))


def unpack_img(s, iscolor=-1):
    """The header of a record, and its image as a NumPy array, blue first as in OpenCV; iscolor 1: color, 0: grey."""
    header, data = unpack(s)
    pixels = _symbind.imdecode(data, iscolor, False).asnumpy()
    return header, pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
