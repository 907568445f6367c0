"""Stores by name, and the base of stores that are written in Python."""

import abc as _abc
import atexit as _atexit
import os as _os
import tempfile as _tempfile
import weakref as _weakref

from .. import _symbind

__all__ = ["KVStoreBase", "TestStore", "create"]


class KVStoreBase(_abc.ABC):
    """Interface of custom stores: `@KVStoreBase.register` makes one known to `create`. Training loops that call the
    store themselves may use one; Module takes the stores of Symbind."""

    OPTIMIZER = "optimizer"
    kv_registry = {}  # classes by name in lower case

    @_abc.abstractmethod
    def broadcast(self, key, value, out, priority=0):
        """Gives a key its first value, and copies it into `out`."""

    @_abc.abstractmethod
    def pushpull(self, key, value, out=None, priority=0):
        """Sums `value` over devices and workers into `out`."""

    @_abc.abstractmethod
    def set_optimizer(self, optimizer):
        """The store updates its values with it from now on."""

    @staticmethod
    @_abc.abstractmethod
    def is_capable(capability):
        """Whether the store can do that: "optimizer"."""

    @_abc.abstractmethod
    def save_optimizer_states(self, fname, dump_optimizer=False):
        """Writes the states of the store's optimizer to a file."""

    @_abc.abstractmethod
    def load_optimizer_states(self, fname):
        """Reads the states of the store's optimizer from a file."""

    @property
    @_abc.abstractmethod
    def type(self):
        """The kind of store."""

    @property
    @_abc.abstractmethod
    def rank(self):
        """The number of this worker, from 0."""

    @property
    @_abc.abstractmethod
    def num_workers(self):
        """The number of workers."""

    @staticmethod
    def register(klass):
        """Class decorator: makes the store known to `create` by its name, in any case."""
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass


class _StoreUpdater:
    """The optimizer of a store with the states it has there, as scripts find it in `KVStore._updater`."""

    def __init__(self, store, optimizer):
        self._store = _weakref.ref(store)
        self.optimizer = optimizer

    def _kept(self):
        store = self._store()
        if store is None:
            raise ReferenceError("the store of this updater no longer exists")
        return store

    def get_states(self, dump_optimizer=False):
        """The bytes of a .states file."""
        with _tempfile.TemporaryDirectory() as folder:
            path = _os.path.join(folder, "states")
            self._kept().save_optimizer_states(path, dump_optimizer)
            with open(path, "rb") as file:
                return file.read()

    def set_states(self, states):
        """Takes the states from the bytes of a .states file."""
        with _tempfile.TemporaryDirectory() as folder:
            path = _os.path.join(folder, "states")
            with open(path, "wb") as file:
                file.write(states)
            self._kept().load_optimizer_states(path)

    @property
    def states(self):
        """Copies of the states by key."""
        updater = _symbind.Updater(self.optimizer)
        updater.set_states(self.get_states())
        return dict(updater.states)

    def __call__(self, index, grad, weight):
        raise NotImplementedError("the store updates its own values: push the gradient and pull the weight")


def _set_optimizer(self, optimizer):
    """The store updates its values with it from now on."""
    _native_set_optimizer(self, optimizer)
    self._updater = _StoreUpdater(self, optimizer)


def _set_updater(self, updater):
    """The store updates its values with this function (key, pushed, stored) from now on."""
    _native_set_updater(self, updater)
    self._updater = updater


KVStore = _symbind.KVStore
_native_set_optimizer, _native_set_updater = KVStore.set_optimizer, KVStore.set_updater
KVStore.set_optimizer = _set_optimizer
KVStore.set_updater = KVStore._set_updater = _set_updater
KVStore._updater = None
KVStore.OPTIMIZER = KVStoreBase.OPTIMIZER
KVStore.kv_registry = KVStoreBase.kv_registry
KVStore.register = staticmethod(KVStoreBase.register)
_abc.ABCMeta.register(KVStoreBase, KVStore)


def create(name="local"):
    """A store of a kind: "local" sums on the CPU, "device" where the arrays are, "dist_sync" and the like over the
    workers of a job that mpirun started; or one that was registered."""
    if not isinstance(name, str):
        raise _symbind.MXNetTypeError(f"expected the name of a kind of store, not {name!r}")
    if name.lower() in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[name.lower()]()
    return _symbind.create_kvstore(name)


# While Python can still be called: the updates of a distributed job may be written in it.
_atexit.register(_symbind.leave_job)


def _each(arrays):
    return arrays if isinstance(arrays, (list, tuple)) else [arrays]


@KVStoreBase.register
class TestStore(KVStoreBase):
    """Sums the given arrays and stores nothing: for tests of training loops."""

    __test__ = False  # no test case

    def broadcast(self, key, value, out, priority=0):
        """Copies the value into each array of `out`."""
        for target in _each(out):
            _each(value)[0].copyto(target)

    def pushpull(self, key, value, out=None, priority=0):
        """Writes the sum of `value` into `out`, or into `value` itself."""
        values = _each(value)
        total = values[0].copy()
        for one in values[1:]:
            total += one.as_in_context(total.context)
        for target in values if out is None else _each(out):
            total.copyto(target)

    def set_optimizer(self, optimizer):
        """Fails: the store does not update."""
        raise NotImplementedError("TestStore does not update values")

    @staticmethod
    def is_capable(capability):
        """False for "optimizer"; MXNetError for what no store has."""
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return False
        raise _symbind.MXNetError(f"there is no capability {capability!r}: 'optimizer' is the only one")

    def save_optimizer_states(self, fname, dump_optimizer=False):
        """Fails: there are no states."""
        raise NotImplementedError("TestStore has no optimizer")

    def load_optimizer_states(self, fname):
        """Fails: there are no states."""
        raise NotImplementedError("TestStore has no optimizer")

    @property
    def type(self):
        return "teststore"

    @property
    def rank(self):
        return 0

    @property
    def num_workers(self):
        return 1
