"""The role of this process in a distributed job: worker, or server or scheduler.

A process that is not a worker runs the script of the workers, and never returns from `import symbind`, as in MXNet: in
a job of mpirun it holds the keys of the workers' dist_async stores until they have ended, and then exits with
code 0; one that another launcher started has nothing to do and exits immediately. mpirun's processes get the variables
that MXNet's launchers set (DMLC_ROLE, DMLC_RANK, DMLC_NUM_WORKER, …) where they are missing.
"""

import os as _os
import sys as _sys

from .tools._launch import variables as _variables

__all__ = ["KVStoreServer"]


class KVStoreServer:
    """MXNet's server loop. A worker has nothing to serve: run() returns."""

    def __init__(self, kvstore):
        self.kvstore = kvstore

    def run(self):
        """Serves until the workers have ended; that is, not at all."""


def _is_worker():
    return _os.environ.get("DMLC_ROLE", "").lower() in ("", "worker")


def _init_kvstore_server_module():
    """Called at the beginning of `import symbind`."""
    if _variables.is_rank(_os.environ):
        _variables.set_process_variables()
    elif not _is_worker():
        _sys.exit(0)


def _serve():
    """Called at the end of `import symbind`: a server does not come back."""
    if _is_worker():
        return
    from . import _symbind

    # All of the package is there. Other threads must not wait for this import to end: the modules of optimizers that
    # servers are sent import symbind, too.
    _sys.modules[__package__].__spec__._initializing = False
    _symbind.serve_job()
    _sys.exit(0)
