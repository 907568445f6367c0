"""symbind.kvstore_server under MXNet 1.9's name."""

from ..kvstore_server import KVStoreServer

__all__ = ["KVStoreServer"]
