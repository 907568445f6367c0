"""Stores: where gradients of several devices come together."""

from .base import KVStoreBase, create
from .kvstore import KVStore
from . import base, kvstore, kvstore_server

__all__ = ["KVStore", "KVStoreBase", "create"]
