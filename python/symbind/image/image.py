"""Images as arrays of shape (height, width, channels), augmenters of them, and an iterator.

Pixels are decoded, resized and moved in C++. What is random is drawn from Python's `random` (and NumPy's, for
LightingAug), as in MXNet: seed those.
"""

import json as _json
import logging as _logging
import math as _math
import os as _os
import random as _random

import numpy as _np

from .. import _symbind, io, recordio
from .. import ndarray as nd
from ..base import numeric_types as _numeric_types

__all__ = [
    "Augmenter",
    "BrightnessJitterAug",
    "CastAug",
    "CenterCropAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "CreateAugmenter",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "HueJitterAug",
    "ImageIter",
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
    "imdecode",
    "imencode",
    "imread",
    "imresize",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize_short",
    "scale_down",
]


def _given(result, out):
    if out is None:
        return result
    out[:] = result
    return out


def imread(filename, flag=1, to_rgb=True, out=None):
    """An image from a JPEG or PNG file; flag 0: grey. `to_rgb`: red is the first channel, otherwise blue."""
    return _given(_symbind.imread(_os.fspath(filename), flag, bool(to_rgb)), out)


def imdecode(buf, flag=1, to_rgb=True, out=None):
    """An image from the bytes of a JPEG or PNG file, or an array of them."""
    if isinstance(buf, nd.NDArray):
        buf = buf.asnumpy()
    if isinstance(buf, str):
        raise TypeError("imdecode takes the bytes of an image, not text; to read a file there is imread")
    return _given(_symbind.imdecode(buf, flag, bool(to_rgb)), out)


def imencode(src, img_fmt=".jpg", quality=95, to_rgb=True):
    """The bytes of a JPEG or PNG file; `to_rgb`: red is the first channel of src."""
    return _symbind.imencode(_as_image(src), img_fmt, quality, bool(to_rgb))


def _as_image(src):
    return src if isinstance(src, nd.NDArray) else nd.array(src, dtype=_np.asarray(src).dtype)


def imresize(src, w, h, interp=1, out=None):
    """Resizes to w x h. `interp`: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by the sizes, 10 random."""
    return _given(_symbind.imresize(_as_image(src), int(w), int(h), _interpolation(interp)), out)


def _interpolation(interp):
    return _random.randint(0, 4) if interp == 10 else interp


def copyMakeBorder(src, top, bot, left, right, type=0, value=0.0, values=None, out=None):
    """Adds a border. `type`: 0 constant (`values`), 1 replicate, 2 reflect, 3 wrap, 4 reflect without the edge."""
    values = list(values) if values else [value]
    return _given(_symbind.copy_make_border(_as_image(src), top, bot, left, right, type, values), out)


def scale_down(src_size, size):
    """The crop size (w, h), made smaller with its aspect kept until it fits into src_size."""
    w, h = size
    src_w, src_h = src_size
    if src_h < h:
        w, h = float(w * src_h) / h, src_h
    if src_w < w:
        w, h = src_w, float(h * src_w) / w
    return int(w), int(h)


def resize_short(src, size, interp=2):
    """Resizes the shorter side to `size`, and the other with it."""
    h, w = src.shape[:2]
    new_h, new_w = (size * h // w, size) if h > w else (size, size * w // h)
    return imresize(src, new_w, new_h, interp)


def fixed_crop(src, x0, y0, w, h, size=None, interp=2):
    """The window w x h from column x0 and row y0 on, resized to `size` (w, h) if that is given."""
    out = _symbind.imcrop(_as_image(src), int(x0), int(y0), int(w), int(h))
    if size is not None and (w, h) != tuple(size):
        out = imresize(out, *size, interp=interp)
    return out


def random_crop(src, size, interp=2):
    """A window of `size` (w, h) anywhere, smaller and enlarged where the image is smaller: (image, (x0, y0, w, h))."""
    h, w = src.shape[:2]
    new_w, new_h = scale_down((w, h), size)
    x0 = _random.randint(0, w - new_w)
    y0 = _random.randint(0, h - new_h)
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def center_crop(src, size, interp=2):
    """The window of `size` (w, h) in the middle, smaller and enlarged where the image is: (image, (x0, y0, w, h))."""
    h, w = src.shape[:2]
    new_w, new_h = scale_down((w, h), size)
    x0 = int((w - new_w) / 2)
    y0 = int((h - new_h) / 2)
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def random_size_crop(src, size, area, ratio, interp=2, **kwargs):
    """A window of a random part of the area and a random aspect, resized to `size`: (image, (x0, y0, w, h)).

    `area` is the least part, or (least, most); `ratio` is (least, most) of width / height.
    """
    if "min_area" in kwargs:
        area = kwargs.pop("min_area")
    if kwargs:
        raise TypeError(f"random_size_crop has no argument {', '.join(kwargs)}")
    h, w = src.shape[:2]
    least, most = (area, 1.0) if isinstance(area, _numeric_types) else area
    for _ in range(10):
        target = _random.uniform(least, most) * h * w
        aspect = _math.exp(_random.uniform(_math.log(ratio[0]), _math.log(ratio[1])))
        new_w = int(round(_math.sqrt(target * aspect)))
        new_h = int(round(_math.sqrt(target / aspect)))
        if 1 <= new_w <= w and 1 <= new_h <= h:
            x0 = _random.randint(0, w - new_w)
            y0 = _random.randint(0, h - new_h)
            return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)
    return center_crop(src, size, interp)


def color_normalize(src, mean, std=None):
    """(src - mean) / std; None leaves a step out."""
    if mean is not None:
        src = src - mean
    if std is not None:
        src = src / std
    return src


def imrotate(src, rotation_degrees, zoom_in=False, zoom_out=False):
    """Turns an image (channels, height, width), or a batch of them, by an angle or an array of angles; float32.

    `zoom_in`: enlarged until nothing outside shows; `zoom_out`: shrunk until all of the image shows.
    """
    if zoom_in and zoom_out:
        raise ValueError("zoom_in and zoom_out cannot be both True")
    if src.dtype != _np.float32:
        raise TypeError(f"only float32 images can be turned, not {_np.dtype(src.dtype).name}")
    single = src.ndim == 3
    if src.ndim not in (3, 4):
        raise ValueError(f"expected (channels, height, width) or a batch of that, not {src.shape}")
    batch = nd.expand_dims(src, axis=0) if single else src
    degrees = rotation_degrees.asnumpy() if isinstance(rotation_degrees, nd.NDArray) else rotation_degrees
    degrees = _np.atleast_1d(_np.asarray(degrees, dtype="float64"))
    if len(degrees) not in (1, len(batch)):
        raise ValueError(f"there must be an angle for each of the {len(batch)} images, or one: {len(degrees)}")
    grid = _np.stack([_turned_grid(*batch.shape[2:], angle, zoom_in, zoom_out) for angle in degrees])
    grid = nd.array(_np.broadcast_to(grid, (len(batch), *grid.shape[1:])).astype("float32"))
    turned = nd.BilinearSampler(batch, grid)
    return turned[0] if single else turned


def _turned_grid(height, width, degrees, zoom_in, zoom_out):
    """Where each pixel comes from: (2, height, width), x first, in -1 ... 1."""
    angle = _math.radians(degrees)
    cosine, sine = _math.cos(angle), _math.sin(angle)
    y, x = _np.mgrid[0:height, 0:width].astype("float64")
    x -= (width - 1) / 2
    y -= (height - 1) / 2
    # How much larger than the image the rectangle around the turned image is.
    wide = (width * abs(cosine) + height * abs(sine)) / width
    high = (width * abs(sine) + height * abs(cosine)) / height
    scale = min(1 / wide, 1 / high) if zoom_in else max(wide, high) if zoom_out else 1
    from_x = (cosine * x - sine * y) * scale / max((width - 1) / 2, 0.5)
    from_y = (sine * x + cosine * y) * scale / max((height - 1) / 2, 0.5)
    return _np.stack([from_x, from_y])


def random_rotate(src, angle_limits, zoom_in=False, zoom_out=False):
    """Turns an image, or each of a batch, by an angle between the two limits, in degrees."""
    low, high = angle_limits
    if src.ndim == 3:
        return imrotate(src, _random.uniform(low, high), zoom_in, zoom_out)
    angles = [_random.uniform(low, high) for _ in range(len(src))]
    return imrotate(src, nd.array(angles), zoom_in, zoom_out)


class Augmenter:
    """Changes an image: called with one, returns one. `dumps()` describes it."""

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        for name, value in kwargs.items():
            if isinstance(value, nd.NDArray):
                value = value.asnumpy()
            kwargs[name] = value.tolist() if isinstance(value, _np.ndarray) else value

    def dumps(self):
        return _json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src):
        raise NotImplementedError(f"{type(self).__name__} must define __call__(src)")


class SequentialAug(Augmenter):
    """Several augmenters, one after the other."""

    def __init__(self, ts):
        super().__init__()
        self.ts = ts

    def dumps(self):
        return [type(self).__name__.lower(), [aug.dumps() for aug in self.ts]]

    def __call__(self, src):
        for aug in self.ts:
            src = aug(src)
        return src


class RandomOrderAug(Augmenter):
    """Several augmenters in a random order."""

    def __init__(self, ts):
        super().__init__()
        self.ts = ts

    def dumps(self):
        return [type(self).__name__.lower(), [aug.dumps() for aug in self.ts]]

    def __call__(self, src):
        _random.shuffle(self.ts)
        for aug in self.ts:
            src = aug(src)
        return src


class ResizeAug(Augmenter):
    """Resizes the shorter side."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src):
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resizes to (w, h), whatever the aspect."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src):
        return imresize(src, *self.size, interp=self.interp)


class RandomCropAug(Augmenter):
    """random_crop."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src):
        return random_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """random_size_crop."""

    def __init__(self, size, area, ratio, interp=2, **kwargs):
        if "min_area" in kwargs:
            area = kwargs.pop("min_area")
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size = size
        self.area = area
        self.ratio = ratio
        self.interp = interp

    def __call__(self, src):
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(Augmenter):
    """center_crop."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src):
        return center_crop(src, self.size, self.interp)[0]


_GREY = _np.array([[[0.299, 0.587, 0.114]]], dtype="float32")


class BrightnessJitterAug(Augmenter):
    """Multiplies by a factor in [1 - brightness, 1 + brightness]."""

    def __init__(self, brightness):
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src):
        return src * (1.0 + _random.uniform(-self.brightness, self.brightness))


class ContrastJitterAug(Augmenter):
    """Moves colors away from the mean grey of the image, by a factor in [1 - contrast, 1 + contrast]."""

    def __init__(self, contrast):
        super().__init__(contrast=contrast)
        self.contrast = contrast
        self.coef = nd.array(_GREY)

    def __call__(self, src):
        alpha = 1.0 + _random.uniform(-self.contrast, self.contrast)
        grey = src * self.coef
        mean = 3.0 * (1.0 - alpha) / grey.size * nd.sum(grey)
        return src * alpha + mean


class SaturationJitterAug(Augmenter):
    """Moves colors away from their own grey, by a factor in [1 - saturation, 1 + saturation]."""

    def __init__(self, saturation):
        super().__init__(saturation=saturation)
        self.saturation = saturation
        self.coef = nd.array(_GREY)

    def __call__(self, src):
        alpha = 1.0 + _random.uniform(-self.saturation, self.saturation)
        grey = nd.sum(src * self.coef, axis=2, keepdims=True)
        return src * alpha + grey * (1.0 - alpha)


class HueJitterAug(Augmenter):
    """Turns hues, in YIQ, by an angle in [-hue, hue] half turns."""

    _TO_YIQ = _np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
    _FROM_YIQ = _np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])

    def __init__(self, hue):
        super().__init__(hue=hue)
        self.hue = hue

    def __call__(self, src):
        angle = _random.uniform(-self.hue, self.hue) * _np.pi
        cosine, sine = _np.cos(angle), _np.sin(angle)
        turn = _np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
        return nd.dot(src, nd.array((self._FROM_YIQ @ turn @ self._TO_YIQ).T))


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation, those that are not 0, in a random order."""

    def __init__(self, brightness, contrast, saturation):
        kinds = [(BrightnessJitterAug, brightness), (ContrastJitterAug, contrast), (SaturationJitterAug, saturation)]
        super().__init__([kind(amount) for kind, amount in kinds if amount > 0])


class LightingAug(Augmenter):
    """Adds noise along the principal components of colors."""

    def __init__(self, alphastd, eigval, eigvec):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd = alphastd
        self.eigval = _np.asarray(eigval)
        self.eigvec = _np.asarray(eigvec)

    def __call__(self, src):
        alpha = _np.random.normal(0, self.alphastd, size=(3,))
        return src + nd.array((self.eigvec * alpha) @ self.eigval)


class ColorNormalizeAug(Augmenter):
    """color_normalize."""

    def __init__(self, mean, std):
        mean, std = (_color_array(value) for value in (mean, std))
        super().__init__(mean=mean, std=std)
        self.mean = mean
        self.std = std

    def __call__(self, src):
        return color_normalize(src, self.mean, self.std)


def _color_array(value):
    return value if value is None or isinstance(value, nd.NDArray) else nd.array(value)


class RandomGrayAug(Augmenter):
    """Grey with probability p."""

    def __init__(self, p):
        super().__init__(p=p)
        self.p = p
        self.mat = nd.array([[0.21] * 3, [0.72] * 3, [0.07] * 3])

    def __call__(self, src):
        return nd.dot(src, self.mat) if _random.random() < self.p else src


class HorizontalFlipAug(Augmenter):
    """Mirrors with probability p."""

    def __init__(self, p):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src):
        return _symbind.imflip(src) if _random.random() < self.p else src


class CastAug(Augmenter):
    """Another type of numbers."""

    def __init__(self, typ="float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src):
        return src.astype(self.typ)


# Of ImageNet.
_MEAN = (123.68, 116.28, 103.53)
_STD = (58.395, 57.12, 57.375)
_EIGVAL = _np.array([55.46, 4.794, 1.148])
_EIGVEC = _np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def _color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray):
    augs = []
    if brightness or contrast or saturation:
        augs.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        augs.append(HueJitterAug(hue))
    if pca_noise > 0:
        augs.append(LightingAug(pca_noise, _EIGVAL, _EIGVEC))
    if rand_gray > 0:
        augs.append(RandomGrayAug(rand_gray))
    return augs


def _normalizers(mean, std):
    mean = _np.array(_MEAN) if mean is True else mean
    std = _np.array(_STD) if std is True else std
    for name, value in (("mean", mean), ("std", std)):
        if value is not None and _np.size(value.asnumpy() if isinstance(value, nd.NDArray) else value) not in (1, 3):
            raise ValueError(f"{name} must have 1 or 3 numbers")
    return [ColorNormalizeAug(mean, std)] if mean is not None or std is not None else []


def CreateAugmenter(
    data_shape,
    resize=0,
    rand_crop=False,
    rand_resize=False,
    rand_mirror=False,
    mean=None,
    std=None,
    brightness=0,
    contrast=0,
    saturation=0,
    hue=0,
    pca_noise=0,
    rand_gray=0,
    inter_method=2,
):
    """A list of augmenters: resize, crop, mirror, cast to float32, colors, normalize.

    mean and std: True means ImageNet's.
    """
    crop_size = (data_shape[2], data_shape[1])
    augs = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise AssertionError("rand_resize needs rand_crop")
        augs.append(RandomSizedCropAug(crop_size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        augs.append((RandomCropAug if rand_crop else CenterCropAug)(crop_size, inter_method))
    if rand_mirror:
        augs.append(HorizontalFlipAug(0.5))
    augs.append(CastAug())
    augs += _color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray)
    return augs + _normalizers(mean, std)


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
            raise AssertionError("ImageIter needs path_imgrec, path_imglist or imglist")
        if dtype not in ("int32", "float32", "int64", "float64", "uint8"):
            raise AssertionError(f"dtype must be int32, float32, int64, float64 or uint8, not {dtype}")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ValueError(f"last_batch_handle must be pad, discard or roll_over, not {last_batch_handle!r}")
        if not 0 <= part_index < num_parts:
            raise ValueError(f"part_index must be between 0 and {num_parts - 1}: {part_index}")
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
                        raise ValueError(f"[{path_imglist}] line {number}: expected an id, labels and a path")
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
                raise AssertionError("shuffling and parts of a RecordIO file need path_imgidx")
            self.seq = self.imgidx
        else:
            self.seq = self.imgidx
        if num_parts > 1:
            size = len(self.seq) // num_parts
            self.seq = self.seq[part_index * size : (part_index + 1) * size]

    def reset(self):
        """To the beginning; of a batch that rolls over, the samples are kept."""
        if self.seq is not None and self.shuffle:
            _random.shuffle(self.seq)
        if self.last_batch_handle != "roll_over" or not self._at_end:
            self._cache = []
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur = 0
        self._at_end = False

    def hard_reset(self):
        """To the beginning; nothing is kept."""
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
            raise ValueError(f"data_shape must be (3, height, width), not {tuple(data_shape)}")

    def check_valid_image(self, data):
        if len(data[0].shape) == 0:
            raise RuntimeError("the image has no pixels")

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
        try:
            while len(samples) < self.batch_size:
                image, label = self._next_good_sample()
                samples.append((self.postprocess_data(image).asnumpy(), label))
        except StopIteration:
            self._at_end = True
            if not samples or self.last_batch_handle == "discard":
                raise
            if self.last_batch_handle == "roll_over":
                self._cache = samples
                raise
        pad = self.batch_size - len(samples)
        return self._batch_of(samples, pad)

    def _batch_of(self, samples, pad):
        data = _np.zeros((self.batch_size, *self.data_shape), dtype=self.dtype)
        label = _np.zeros(self.provide_label[0].shape, dtype="float32")
        for i in range(self.batch_size):
            image, labels = samples[i % len(samples)]
            if image.shape != self.data_shape:
                raise ValueError(f"the augmented image has shape {image.shape}, not data_shape, {self.data_shape}")
            data[i] = image
            label[i] = _np.asarray(labels, dtype="float32").reshape(label[i].shape)
        return io.DataBatch([nd.array(data, dtype=self.dtype)], [nd.array(label)], pad=pad)
