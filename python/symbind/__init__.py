"""Symbind: symbolic networks, bound to devices and trained.

``import symbind as mx`` offers what scripts of MXNet's Symbol and Module era use, under the same names.
"""

import os as _os

# libgomp's threads spin for milliseconds while they wait, which makes everything crawl as soon as there are more of
# them than cores. Some 50 microseconds are enough between the kernels of a step. The setting is read when libgomp
# loads, so it is made before; a choice of the user's stays.
if "OMP_WAIT_POLICY" not in _os.environ:
    _os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from ._library_path import add_packages as _add_packages

_add_packages()

_is_of_job = "DMLC_ROLE" in _os.environ or "OMPI_COMM_WORLD_RANK" in _os.environ
if _is_of_job:
    from .kvstore_server import _init_kvstore_server_module, _serve

    _init_kvstore_server_module()  # the threads of a worker are counted, too, before libgomp loads

from . import base
from .base import MXNetError
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from . import attribute, context, executor, name
from .attribute import AttrScope
from . import ndarray, random, symbol
from . import ndarray as nd
from . import random as rnd
from . import symbol as sym
from . import engine, io, libinfo, util
from . import initializer, kvstore, lr_scheduler, optimizer
from . import callback, metric, monitor
from . import monitor as mon
from . import initializer as init
from . import kvstore as kv
from . import optimizer as opt
from . import model, module, operator, predictor
from . import module as mod
from .ndarray import waitall
from .predictor import Predictor
from . import _lazy, executor_manager
from ._as_mxnet import install_as_mxnet
from .util import is_np_array, is_np_shape, np_array, np_shape, set_np_shape, use_np, use_np_array, use_np_shape

__version__ = libinfo.__version__
_lazy.install(globals())
if _is_of_job:
    _serve()
