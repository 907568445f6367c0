"""Module: a network with its parameters, its optimizer and its devices."""

from .. import _symbind
from .._symbind import DataParallelExecutorGroup, Module

__all__ = ["DataParallelExecutorGroup", "Module", "load_checkpoint"]


def _load(prefix, epoch, load_optimizer_states=False, **kwargs):
    """A module from prefix-symbol.json, prefix-EPOCH.params and, if asked, prefix-EPOCH.states; its parameters are
    set once it is bound. Keywords are those of Module."""
    if load_optimizer_states:
        _symbind._match_states(prefix, epoch)
    symbol, arg_params, aux_params = _symbind._load_checkpoint(prefix, epoch)
    module = Module(symbol, **kwargs)
    module._preload(arg_params, aux_params, f"{prefix}-{epoch:04d}.states" if load_optimizer_states else "")
    return module


Module.load = staticmethod(_load)
Module.__module__ = __name__
Module._grad_req = None  # until it is bound
load_checkpoint = _symbind._load_checkpoint
