"""The role of this process in a distributed job: worker, or one of the servers and schedulers of MXNet's launchers.

Workers own the keys of Symbind's distributed stores, so that servers and schedulers have nothing to do: a process with
such a role ends quietly, with code 0, when it imports symbind. mpirun's processes are workers; they get the variables
that MXNet's launchers set (DMLC_ROLE, DMLC_RANK, DMLC_NUM_WORKER, …) where they are missing.
"""

import os as _os
import sys as _sys

from .tools._launch import variables as _variables

__all__ = ["KVStoreServer"]


class KVStoreServer:
    """MXNet's server loop. There is nothing to serve: run() returns."""

    def __init__(self, kvstore):
        self.kvstore = kvstore

    def run(self):
        """Serves until the workers have ended; that is, not at all."""


def _init_kvstore_server_module():
    """Called by `import symbind`."""
    if _variables.is_rank(_os.environ):
        _variables.set_worker_variables()
    if _os.environ.get("DMLC_ROLE", "worker") != "worker":
        _sys.exit(0)
