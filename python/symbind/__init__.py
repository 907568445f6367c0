"""Symbind: symbolic networks, bound to devices and trained.

``import symbind as mx`` offers what scripts of MXNet's Symbol and Module era use, under the same names.
"""

import os as _os

# libgomp's threads spin while they wait, which slows everything down as soon as there are more of them than cores. The
# policy is read when libgomp loads, so it is set before; a choice of the user's stays.
_os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from . import base  # noqa: E402
from .base import MXNetError  # noqa: E402
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus  # noqa: E402
from . import attribute, context, executor, name  # noqa: E402
from .attribute import AttrScope  # noqa: E402
from . import ndarray, random, symbol  # noqa: E402
from . import ndarray as nd  # noqa: E402
from . import random as rnd  # noqa: E402
from . import symbol as sym  # noqa: E402
from .ndarray import waitall  # noqa: E402

__version__ = "1.9.1"  # the MXNet whose interface this is; scripts compare it
