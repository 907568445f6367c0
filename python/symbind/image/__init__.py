"""Images: reading, changing, and iterating over them."""

from . import detection, image
from . import detection as det  # noqa: F401
from .detection import *  # noqa: F403
from .image import *  # noqa: F403

__all__ = image.__all__ + detection.__all__
