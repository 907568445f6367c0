"""MXNet 1.9's place for symbind.kvstore_server."""

from ..kvstore_server import KVStoreServer

__all__ = ["KVStoreServer"]
