"""Calls of mx.image, made under MXNet by record_images.py and under Symbind by tests/python/test_image.py."""

import random

import numpy as np


def calls(mx, pattern):
    """Name → function without arguments; what it returns is compared. Python's random is seeded before each."""
    image = mx.nd.array(pattern(24, 31, 3), dtype="uint8")
    small = mx.nd.array(pattern(9, 7, 3), dtype="uint8")
    floats = image.astype("float32")
    planes = mx.nd.array(pattern(12, 17, 3).transpose(2, 0, 1).astype("float32"))
    batch = mx.nd.array(np.stack([pattern(8, 8, 3).transpose(2, 0, 1), pattern(8, 8, 3).transpose(2, 1, 0)]))
    i = mx.image
    eigval, eigvec = np.array([55.46, 4.794, 1.148]), np.arange(9.0).reshape(3, 3) / 10
    boxes = np.array([[0, 0.1, 0.2, 0.5, 0.6], [2, 0.3, 0.4, 0.9, 0.8]], dtype="float32")
    return {
        "resize_short": lambda: i.resize_short(image, 15),
        "resize_short tall": lambda: i.resize_short(small, 12, interp=1),
        "resize_short automatic": lambda: i.resize_short(image, 11, interp=9),
        "fixed_crop": lambda: i.fixed_crop(image, 3, 4, 10, 12),
        "fixed_crop resized": lambda: i.fixed_crop(image, 3, 4, 10, 12, (7, 8), 1),
        "center_crop": lambda: i.center_crop(image, (11, 8))[0],
        "center_crop of a small one": lambda: i.center_crop(small, (11, 8))[0],
        "random_crop": lambda: i.random_crop(image, (11, 8))[0],
        "random_crop of a small one": lambda: i.random_crop(small, (11, 8), 1)[0],
        "random_size_crop": lambda: i.random_size_crop(image, (9, 10), 0.2, (0.75, 1.33), 1)[0],
        "random_size_crop with a range": lambda: i.random_size_crop(image, (9, 10), (0.1, 0.4), (0.5, 2.0), 1)[0],
        "color_normalize": lambda: i.color_normalize(floats.copy(), mx.nd.array([1, 2, 3]), mx.nd.array([4, 5, 6])),
        "imrotate": lambda: i.imrotate(planes, 30),
        "imrotate zoom_in": lambda: i.imrotate(planes, -50, zoom_in=True),
        "imrotate zoom_out": lambda: i.imrotate(planes, 110, zoom_out=True),
        "imrotate batch": lambda: i.imrotate(batch, mx.nd.array([10, 75])),
        "BrightnessJitterAug": lambda: i.BrightnessJitterAug(0.4)(floats.copy()),
        "ContrastJitterAug": lambda: i.ContrastJitterAug(0.4)(floats.copy()),
        "SaturationJitterAug": lambda: i.SaturationJitterAug(0.4)(floats.copy()),
        "ColorJitterAug": lambda: i.ColorJitterAug(0.2, 0.3, 0.4)(floats.copy()),
        "HueJitterAug": lambda: i.HueJitterAug(0.3)(floats.copy()),
        "LightingAug": lambda: i.LightingAug(0.1, eigval, eigvec)(floats.copy()),
        "RandomGrayAug": lambda: i.RandomGrayAug(1.0)(floats.copy()),
        "HorizontalFlipAug": lambda: i.HorizontalFlipAug(1.0)(image),
        "CastAug": lambda: i.CastAug()(image),
        "ForceResizeAug": lambda: i.ForceResizeAug((9, 20))(image),
        "SequentialAug": lambda: i.SequentialAug([i.ResizeAug(20, 1), i.RandomCropAug((9, 8))])(image),
        "DetHorizontalFlipAug": lambda: mx.nd.array(i.DetHorizontalFlipAug(1.0)(floats, boxes.copy())[1]),
        "CreateAugmenter": lambda: _apply(i.CreateAugmenter((3, 12, 14), resize=16, mean=True, std=True), image),
        "CreateAugmenter at random": lambda: _apply(
            i.CreateAugmenter((3, 12, 14), 0, True, False, True, brightness=0.1, contrast=0.1, saturation=0.1), image
        ),
    }


def _apply(augmenters, image):
    for augment in augmenters:
        image = augment(image)
    return image


def answers(mx, pattern):
    for name, call in calls(mx, pattern).items():
        random.seed(7)
        np.random.seed(7)
        yield name, call()
