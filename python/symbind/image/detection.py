"""Images with objects in boxes: augmenters that change both, and an iterator.

The label of an image is an array of shape (objects, at least 5): the class, and left, top, right and bottom of the box
as parts of the image's width and height. Rows of -1 only fill a batch up.
"""

import logging as _logging
import random as _random
from math import sqrt as _sqrt

import numpy as _np

from .. import io
from .. import ndarray as nd
from .._symbind import MXNetError, MXNetTypeError, MXNetValueError
from . import augmenters as _augmenters
from .image import (
    Augmenter,
    CastAug,
    ForceResizeAug,
    HorizontalFlipAug,
    ImageIter,
    ResizeAug,
    copyMakeBorder,
    fixed_crop,
)

__all__ = [
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
    "ImageDetIter",
]


class DetAugmenter(Augmenter):
    """Changes an image and its label: called with both, returns both."""

    def __call__(self, src, label):
        raise NotImplementedError(f"{type(self).__name__} must define __call__(src, label)")


class DetBorrowAug(DetAugmenter):
    """An augmenter of images that moves no object."""

    def __init__(self, augmenter):
        if not isinstance(augmenter, Augmenter):
            raise MXNetTypeError(f"DetBorrowAug takes an Augmenter, not {type(augmenter).__name__}")
        super().__init__()
        self.augmenter = augmenter

    def dumps(self):
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src, label):
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters, or none with probability skip_prob."""

    def __init__(self, aug_list, skip_prob=0):
        super().__init__(skip_prob=skip_prob)
        if not isinstance(aug_list, list | tuple):
            aug_list = [aug_list]
        for aug in aug_list:
            if not isinstance(aug, DetAugmenter):
                raise MXNetValueError(f"DetRandomSelectAug takes DetAugmenters, not {type(aug).__name__}")
        self.aug_list = list(aug_list)
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self):
        return [type(self).__name__.lower(), [aug.dumps() for aug in self.aug_list]]

    def __call__(self, src, label):
        if _random.random() < self.skip_prob:
            return src, label
        return _random.choice(self.aug_list)(src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirrors image and boxes with probability p."""

    def __init__(self, p):
        super().__init__(p=p)
        self.p = p
        self._flip = HorizontalFlipAug(1.0)

    def __call__(self, src, label):
        if _random.random() < self.p:
            src = self._flip(src)
            label = label.copy()
            label[:, [1, 3]] = 1.0 - label[:, [3, 1]]
        return src, label


def _areas(boxes):
    return _np.maximum(0, boxes[:, 2] - boxes[:, 0]) * _np.maximum(0, boxes[:, 3] - boxes[:, 1])


def _covered(boxes, window):
    """How much of each box is in the window, a part of its area."""
    inside = _np.hstack([_np.maximum(boxes[:, :2], window[:2]), _np.minimum(boxes[:, 2:4], window[2:])])
    return _np.divide(_areas(inside), _areas(boxes), out=_np.zeros(len(boxes)), where=_areas(boxes) > 0)


def _check_ranges(aspect_ratio_range, area_range, who):
    for name, (low, high) in (("aspect_ratio_range", aspect_ratio_range), ("area_range", area_range)):
        if not 0 < low <= high:
            _logging.getLogger().warning(
                "%s does nothing: %s must be positive and in order: %s", who, name, (low, high)
            )
            return False
    return True


def _pair(value, first=1.0):
    return tuple(value) if isinstance(value, list | tuple) else (min(first, value), max(first, value))


class DetRandomCropAug(DetAugmenter):
    """Crops a random window that shows enough of its objects.

    `min_object_covered`: of each object it shows at all, this part of the area. Objects of which less than
    `min_eject_coverage` is left are dropped. After `max_attempts` windows the image stays as it is.
    """

    def __init__(
        self,
        min_object_covered=0.1,
        aspect_ratio_range=(0.75, 1.33),
        area_range=(0.05, 1.0),
        min_eject_coverage=0.3,
        max_attempts=50,
    ):
        aspect_ratio_range, area_range = _pair(aspect_ratio_range), _pair(area_range)
        super().__init__(
            min_object_covered=min_object_covered,
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            min_eject_coverage=min_eject_coverage,
            max_attempts=max_attempts,
        )
        self.min_object_covered = min_object_covered
        self.aspect_ratio_range = aspect_ratio_range
        self.area_range = area_range
        self.min_eject_coverage = min_eject_coverage
        self.max_attempts = max_attempts
        self.enabled = _check_ranges(aspect_ratio_range, area_range, "DetRandomCropAug")

    def __call__(self, src, label):
        found = self._proposal(label, *src.shape[:2]) if self.enabled else None
        if not found:
            return src, label
        x, y, w, h, label = found
        return fixed_crop(src, x, y, w, h), label

    def _proposal(self, label, height, width):
        for _ in range(self.max_attempts):
            ratio = _random.uniform(*self.aspect_ratio_range)
            area = _random.uniform(*self.area_range) * height * width
            w, h = int(round(_sqrt(area * ratio))), int(round(_sqrt(area / ratio)))
            if not (1 <= w <= width and 1 <= h <= height):
                continue
            x, y = _random.randint(0, width - w), _random.randint(0, height - h)
            window = _np.array([x / width, y / height, (x + w) / width, (y + h) / height])
            shown = _covered(label[:, 1:5], window)
            if not (shown > 0).any() or shown[shown > 0].min() <= self.min_object_covered:
                continue
            kept = label[shown >= self.min_eject_coverage].copy()
            if len(kept):
                size = window[2:] - window[:2]
                kept[:, [1, 3]] = _np.clip((kept[:, [1, 3]] - window[0]) / size[0], 0, 1)
                kept[:, [2, 4]] = _np.clip((kept[:, [2, 4]] - window[1]) / size[1], 0, 1)
                return x, y, w, h, kept
        return None


class DetRandomPadAug(DetAugmenter):
    """Puts the image somewhere on a larger one of color `pad_val`."""

    def __init__(
        self, aspect_ratio_range=(0.75, 1.33), area_range=(1.0, 3.0), max_attempts=50, pad_val=(128, 128, 128)
    ):
        pad_val = tuple(pad_val) if isinstance(pad_val, list | tuple) else (pad_val,) * 3
        aspect_ratio_range, area_range = _pair(aspect_ratio_range), _pair(area_range)
        super().__init__(
            aspect_ratio_range=aspect_ratio_range, area_range=area_range, max_attempts=max_attempts, pad_val=pad_val
        )
        self.aspect_ratio_range = aspect_ratio_range
        self.area_range = area_range
        self.max_attempts = max_attempts
        self.pad_val = pad_val
        self.enabled = _check_ranges(aspect_ratio_range, area_range, "DetRandomPadAug") and area_range[1] > 1

    def __call__(self, src, label):
        found = self._proposal(*src.shape[:2]) if self.enabled else None
        if not found:
            return src, label
        height, width = src.shape[:2]
        x, y, w, h = found
        src = copyMakeBorder(src, y, h - y - height, x, w - x - width, type=0, values=self.pad_val)
        label = label.copy()
        label[:, [1, 3]] = (label[:, [1, 3]] * width + x) / w
        label[:, [2, 4]] = (label[:, [2, 4]] * height + y) / h
        return src, label

    def _proposal(self, height, width):
        for _ in range(self.max_attempts):
            ratio = _random.uniform(*self.aspect_ratio_range)
            area = _random.uniform(max(1.0, self.area_range[0]), self.area_range[1]) * height * width
            w, h = int(round(_sqrt(area * ratio))), int(round(_sqrt(area / ratio)))
            if w >= width and h >= height and (w - width >= 2 or h - height >= 2):
                return _random.randint(0, w - width), _random.randint(0, h - height), w, h
        return None


def CreateMultiRandCropAugmenter(
    min_object_covered=0.1,
    aspect_ratio_range=(0.75, 1.33),
    area_range=(0.05, 1.0),
    min_eject_coverage=0.3,
    max_attempts=50,
    skip_prob=0,
):
    """A choice of DetRandomCropAugs; arguments are lists of as many values, or one value for all."""
    columns = [
        min_object_covered if isinstance(min_object_covered, list) else [min_object_covered],
        aspect_ratio_range if isinstance(aspect_ratio_range, list) else [aspect_ratio_range],
        area_range if isinstance(area_range, list) else [area_range],
        min_eject_coverage if isinstance(min_eject_coverage, list) else [min_eject_coverage],
        max_attempts if isinstance(max_attempts, list) else [max_attempts],
    ]
    count = max(len(column) for column in columns)
    for column in columns:
        if len(column) not in (1, count):
            raise MXNetValueError(f"expected lists of {count} values, or one for all: {column}")
    rows = zip(*(column * count if len(column) == 1 else column for column in columns))
    return DetRandomSelectAug([DetRandomCropAug(*row) for row in rows], skip_prob=skip_prob)


def CreateDetAugmenter(
    data_shape,
    resize=0,
    rand_crop=0,
    rand_pad=0,
    rand_gray=0,
    rand_mirror=False,
    mean=None,
    std=None,
    brightness=0,
    contrast=0,
    saturation=0,
    pca_noise=0,
    hue=0,
    inter_method=2,
    min_object_covered=0.1,
    aspect_ratio_range=(0.75, 1.33),
    area_range=(0.05, 3.0),
    min_eject_coverage=0.3,
    max_attempts=50,
    pad_val=(127, 127, 127),
):
    """A list of augmenters: resize, crop, mirror, pad, force to data_shape, cast, colors, normalize.

    rand_crop and rand_pad are probabilities.
    """
    augs = [DetBorrowAug(ResizeAug(resize, inter_method))] if resize > 0 else []
    if rand_crop > 0:
        crop_areas = (area_range[0], min(1.0, area_range[1])) if isinstance(area_range, tuple) else area_range
        crop = CreateMultiRandCropAugmenter(
            min_object_covered, aspect_ratio_range, crop_areas, min_eject_coverage, max_attempts, 1 - rand_crop
        )
        augs.append(crop)
    if rand_mirror:
        augs.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        augs.append(DetRandomSelectAug([pad], 1 - rand_pad))
    augs.append(DetBorrowAug(ForceResizeAug((data_shape[2], data_shape[1]), inter_method)))
    augs.append(DetBorrowAug(CastAug()))
    colors = _augmenters._color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray)
    return augs + [DetBorrowAug(aug) for aug in colors + _augmenters._normalizers(mean, std)]


class ImageDetIter(ImageIter):
    """Batches of images with objects, as ImageIter; other arguments go to CreateDetAugmenter.

    A label in the file is: the length of its head, the length of an object, the rest of the head, the objects. Labels
    of a batch have shape (batch_size, objects, length of an object), padded with -1.
    """

    def __init__(
        self,
        batch_size,
        data_shape,
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
        label_name="label",
        last_batch_handle="pad",
        **kwargs,
    ):
        super().__init__(
            batch_size,
            data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=aug_list,
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
            **kwargs,
        )
        self.label_name = label_name
        self.reshape(label_shape=self._estimate_label_shape())

    def _create_augmenters(self, **kwargs):
        return CreateDetAugmenter(self.data_shape, **kwargs)

    def _estimate_label_shape(self):
        """(most objects of an image, length of an object), by reading all labels."""
        most, length = 0, 5
        self.reset()
        try:
            while True:
                label = self._parse_label(self.next_sample()[0])
                most = max(most, len(label))
                length = label.shape[1]
        except StopIteration:
            pass
        self.reset()
        return most, length

    def _parse_label(self, label):
        raw = _np.asarray(label.asnumpy() if isinstance(label, nd.NDArray) else label, dtype="float32").ravel()
        if raw.size < 7:
            raise MXNetError(f"a label of objects has at least 7 numbers: {raw.size}")
        head, length = int(raw[0]), int(raw[1])
        if length < 5 or head < 2 or raw.size < head or (raw.size - head) % length:
            raise MXNetError(
                f"a label of {raw.size} numbers cannot have a head of {head} and objects of {length} numbers each"
            )
        objects = raw[head:].reshape(-1, length)
        valid = objects[(objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])]
        if not len(valid):
            raise MXNetError("a label has no object with a box of positive size")
        return valid

    def _check_valid_label(self, label):
        if label.ndim != 2 or label.shape[1] < 5:
            raise MXNetError(f"a label must have shape (objects, at least 5), not {label.shape}")

    def check_label_shape(self, label_shape):
        """Fails when labels would not fit into this shape."""
        if len(label_shape) != 2:
            raise MXNetValueError(f"label_shape must be (objects, length of an object), not {tuple(label_shape)}")
        mine = getattr(self, "label_shape", None) or (0, max(label_shape[1], 5))  # the first one, of any objects
        if label_shape[0] < mine[0] or label_shape[1] != mine[1]:
            raise MXNetValueError(
                f"label_shape must have at least {mine[0]} objects of {mine[1]} numbers: {label_shape}"
            )

    def reshape(self, data_shape=None, label_shape=None):
        """Other shapes from the next batch on."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            name = self.provide_data[0].name
            self.provide_data = [io.DataDesc(name, (self.batch_size, *self.data_shape))]
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = tuple(label_shape)
            self.provide_label = [io.DataDesc(self.label_name, (self.batch_size, *self.label_shape))]

    def sync_label_shape(self, it, verbose=False):
        """Gives this iterator and another the larger number of objects of the two."""
        if not isinstance(it, ImageDetIter):
            raise MXNetTypeError(f"sync_label_shape takes an ImageDetIter, not {type(it).__name__}")
        most = max(self.label_shape[0], it.label_shape[0])
        for one in (self, it):
            one.reshape(label_shape=(most, one.label_shape[1]))
        if verbose:
            _logging.getLogger().info("labels are padded to %d objects", most)
        return it

    def augmentation_transform(self, data, label):
        """Image and label after all augmenters."""
        for aug in self.auglist:
            data, label = aug(data, label)
        return data, label

    def _next_good_sample(self):
        while True:
            raw, data = self.next_sample()
            try:
                image = self.imdecode(data)
                self.check_valid_image([image])
                label = self._parse_label(raw)
            except RuntimeError as error:  # MXNetError is one
                _logging.getLogger().warning("ImageDetIter leaves out an image: %s", error)
                continue
            image, label = self.augmentation_transform(image, label)
            self._check_valid_label(label)
            return image, label

    def _batch_of(self, samples, pad):
        data = _np.zeros((self.batch_size, *self.data_shape), dtype=self.dtype)
        label = _np.full((self.batch_size, *self.label_shape), -1, dtype="float32")
        for i in range(self.batch_size):
            image, objects = samples[i % len(samples)]
            if image.shape != self.data_shape:
                raise MXNetValueError(f"the augmented image has shape {image.shape}, not data_shape, {self.data_shape}")
            data[i] = image
            kept = objects[: self.label_shape[0]]
            label[i, : len(kept), : kept.shape[1]] = kept
        return io.DataBatch([nd.array(data, dtype=self.dtype)], [nd.array(label)], pad=pad)

    def draw_next(
        self,
        color=None,
        thickness=2,
        mean=None,
        std=None,
        clip=True,
        waitKey=None,
        window_name="draw_next",
        id2labels=None,
    ):
        """The images of an epoch after all augmenters, with their boxes drawn, as NumPy arrays (height, width, RGB).

        Parameters
        ----------
        color : of the boxes, (red, green, blue); each has a random one otherwise
        thickness : of the lines, in pixels
        mean, std : what was subtracted and divided by, to be undone: True for ImageNet's, or a number per channel
        clip : keep values between 0 and 255
        waitKey : show each image in the window `window_name` and wait so many milliseconds for a key, 0: for ever
        id2labels : names by class, which are written at the boxes

        waitKey and id2labels need OpenCV, the Python module cv2.
        """
        cv2 = _opencv() if waitKey is not None or id2labels is not None else None
        while True:
            try:
                image, label = self._next_good_sample()
            except StopIteration:
                return
            pixels = _restored(image.asnumpy().astype("float32"), mean, std, clip)
            for number, *box in label[:, :5]:
                shade = color or [_random.randint(0, 255) for _ in range(3)]
                left, top = _draw_box(pixels, box, shade, thickness)
                if id2labels is not None and number in id2labels:
                    place = (left, max(top - 4, 12))  # above the box, where there is room
                    cv2.putText(pixels, str(id2labels[number]), place, cv2.FONT_HERSHEY_SIMPLEX, 0.5, tuple(shade), 1)
            if waitKey is not None:
                cv2.imshow(window_name, _np.ascontiguousarray(pixels[..., ::-1]))  # OpenCV shows blue, green, red
                cv2.waitKey(waitKey)
            yield pixels


def _opencv():
    try:
        import cv2
    except ImportError as error:
        raise MXNetError(f"draw_next with waitKey or id2labels needs OpenCV: {error}") from error
    return cv2


def _restored(pixels, mean, std, clip):
    """The bytes of an image whose colours were normalized."""
    if std is not None:
        pixels = pixels * (_np.array(_augmenters._STD) if std is True else _np.asarray(std))
    if mean is not None:
        pixels = pixels + (_np.array(_augmenters._MEAN) if mean is True else _np.asarray(mean))
    return (_np.clip(pixels, 0, 255) if clip else pixels).astype("uint8")


def _draw_box(pixels, box, color, thickness):
    """Draws into the image; returns the left and upper corner."""
    height, width = pixels.shape[:2]
    left, right = (int(_np.clip(at * width, 0, width - 1)) for at in (box[0], box[2]))
    top, bottom = (int(_np.clip(at * height, 0, height - 1)) for at in (box[1], box[3]))
    pixels[top : top + thickness, left : right + 1] = color
    pixels[max(0, bottom - thickness + 1) : bottom + 1, left : right + 1] = color
    pixels[top : bottom + 1, left : left + thickness] = color
    pixels[top : bottom + 1, max(0, right - thickness + 1) : right + 1] = color
    return left, top
