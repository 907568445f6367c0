"""BucketingModule: networks of many sizes that share their parameters."""

from .. import _symbind
from .._symbind import BucketingModule, MXNetValueError

__all__ = ["BucketingModule"]


def _load_dict(sym_dict=None, sym_gen=None, default_bucket_key=None, arg_params=None, aux_params=None, **kwargs):
    """A module from networks by bucket key and parameters that are loaded already. Buckets that sym_dict does not have
    are created by sym_gen, which also returns the names of their inputs. Keywords are those of BucketingModule."""
    if sym_dict is None:
        raise MXNetValueError("sym_dict, the networks by bucket key, is needed")
    return _loaded(sym_dict, sym_gen, default_bucket_key, arg_params, aux_params, "", kwargs)


def _load(prefix, epoch, sym_gen=None, default_bucket_key=None, load_optimizer_states=False, **kwargs):
    """A module from the files of save_checkpoint; it has its parameters once it is bound. Keywords are those of
    BucketingModule."""
    if load_optimizer_states:
        _symbind._match_states(prefix, epoch)
    arg_params, aux_params = _symbind._load_params(prefix, epoch)
    states = f"{prefix}-{epoch:04d}.states" if load_optimizer_states else ""
    symbols = _symbind._load_bucket_symbols(prefix)
    return _loaded(symbols, sym_gen, default_bucket_key, arg_params, aux_params, states, kwargs)


def _loaded(symbols, sym_gen, default_bucket_key, arg_params, aux_params, states, keywords):
    if sym_gen is None:
        raise MXNetValueError(
            "sym_gen is needed: it makes the buckets that were not saved, and names the inputs of all"
        )
    if default_bucket_key is None:
        raise MXNetValueError("default_bucket_key is needed")
    module = BucketingModule(sym_gen, default_bucket_key, **keywords)
    module._preload(symbols, arg_params, aux_params, states)
    return module


BucketingModule.load = staticmethod(_load)
BucketingModule.load_dict = staticmethod(_load_dict)
BucketingModule.__module__ = __name__
BucketingModule._grad_req = None  # until it is bound
