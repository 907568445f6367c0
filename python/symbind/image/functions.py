"""Images as arrays of shape (height, width, channels): reading, resizing, cropping, turning.

Pixels are decoded, resized and moved in C++. What is random is drawn from Python's `random`, as in MXNet: seed that.
"""

import math as _math
import os as _os
import random as _random

import numpy as _np

from .. import _symbind
from .. import ndarray as nd
from ..base import numeric_types as _numeric_types

__all__ = [
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
        raise _symbind.MXNetTypeError("imdecode takes the bytes of an image, not text; to read a file there is imread")
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
    if isinstance(values, _numeric_types):
        values = [values]
    values = list(values) if values else [value]
    return _given(_symbind.copy_make_border(_as_image(src), top, bot, left, right, type, values), out)


def scale_down(src_size, size):
    """The crop size (w, h), reduced with the same aspect ratio so that it fits into src_size."""
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
        raise _symbind.MXNetTypeError(f"random_size_crop has no argument {', '.join(kwargs)}")
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
        raise _symbind.MXNetValueError("zoom_in and zoom_out cannot be both True")
    if src.dtype != _np.float32:
        raise _symbind.MXNetTypeError(f"only float32 images can be turned, not {_np.dtype(src.dtype).name}")
    single = src.ndim == 3
    if src.ndim not in (3, 4):
        raise _symbind.MXNetValueError(f"expected (channels, height, width) or a batch of that, not {src.shape}")
    batch = nd.expand_dims(src, axis=0) if single else src
    degrees = rotation_degrees.asnumpy() if isinstance(rotation_degrees, nd.NDArray) else rotation_degrees
    degrees = _np.atleast_1d(_np.asarray(degrees, dtype="float64"))
    if len(degrees) not in (1, len(batch)):
        raise _symbind.MXNetValueError(
            f"there must be an angle for each of the {len(batch)} images, or one: {len(degrees)}"
        )
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
