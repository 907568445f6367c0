"""KVStore, under the path of MXNet's file."""

from .._symbind import KVStore

__all__ = ["KVStore"]
