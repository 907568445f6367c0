"""Augmenters: objects that change an image.

What is random is drawn from Python's `random` (and NumPy's, for LightingAug), as in MXNet: seed those.
"""

import json as _json
import random as _random

import numpy as _np

from .. import _symbind
from .. import ndarray as nd
from .functions import center_crop, color_normalize, imresize, random_crop, random_size_crop, resize_short

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
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
]


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


class _SeveralAugs(Augmenter):
    """Augmenters that are applied one after the other."""

    def __init__(self, ts):
        super().__init__()
        self.ts = ts

    def dumps(self):
        return [type(self).__name__.lower(), [aug.dumps() for aug in self.ts]]

    def __call__(self, src):
        for aug in self.ts:
            src = aug(src)
        return src


class SequentialAug(_SeveralAugs):
    """Several augmenters, one after the other."""


class RandomOrderAug(_SeveralAugs):
    """Several augmenters in a random order."""

    def __call__(self, src):
        _random.shuffle(self.ts)
        return super().__call__(src)


class ResizeAug(Augmenter):
    """Resizes the shorter side."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src):
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resizes to (w, h) without preserving the aspect ratio."""

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
            raise _symbind.MXNetValueError(f"{name} must have 1 or 3 numbers")
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
            raise _symbind.MXNetValueError("rand_resize needs rand_crop")
        augs.append(RandomSizedCropAug(crop_size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        augs.append((RandomCropAug if rand_crop else CenterCropAug)(crop_size, inter_method))
    if rand_mirror:
        augs.append(HorizontalFlipAug(0.5))
    augs.append(CastAug())
    augs += _color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray)
    return augs + _normalizers(mean, std)
