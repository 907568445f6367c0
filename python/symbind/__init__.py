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
from . import engine, io, libinfo, util  # noqa: E402
from . import initializer, kvstore, lr_scheduler, optimizer  # noqa: E402
from . import callback, metric, monitor  # noqa: E402
from . import monitor as mon  # noqa: E402
from . import initializer as init  # noqa: E402
from . import kvstore as kv  # noqa: E402
from . import optimizer as opt  # noqa: E402
from . import model, module, operator  # noqa: E402
from . import module as mod  # noqa: E402
from .ndarray import waitall  # noqa: E402
from . import _lazy, executor_manager  # noqa: E402
from ._as_mxnet import install_as_mxnet  # noqa: E402

__version__ = libinfo.__version__
_lazy.install(globals())
