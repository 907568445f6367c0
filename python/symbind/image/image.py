"""What MXNet has in this module: functions on images, augmenters and an iterator."""

from . import augmenters, functions, image_iter
from .augmenters import *  # noqa: F403
from .functions import *  # noqa: F403
from .image_iter import *  # noqa: F403

__all__ = sorted(augmenters.__all__ + functions.__all__ + image_iter.__all__)
