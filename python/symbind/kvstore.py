"""Stores: where gradients of several devices come together."""

from . import _symbind
from ._symbind import KVStore

__all__ = ["KVStore", "create"]


def create(name="local"):
    """A store of a kind: "local" sums on the CPU, "device" where the arrays are."""
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a kind of store, not {name!r}")
    return _symbind.create_kvstore(name)
