"""Stores by name, and the base of stores that are written in Python."""

import abc as _abc

from .. import _symbind

__all__ = ["KVStoreBase", "TestStore", "create"]


class KVStoreBase(_abc.ABC):
    """What a store of one's own has: `@KVStoreBase.register` makes it known to `create`. Training loops that call the
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


KVStore = _symbind.KVStore
KVStore.OPTIMIZER = KVStoreBase.OPTIMIZER
KVStore.kv_registry = KVStoreBase.kv_registry
KVStore.register = staticmethod(KVStoreBase.register)
_abc.ABCMeta.register(KVStoreBase, KVStore)


def create(name="local"):
    """A store of a kind: "local" sums on the CPU, "device" where the arrays are; or one that was registered."""
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a kind of store, not {name!r}")
    if name.lower() in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[name.lower()]()
    return _symbind.create_kvstore(name)


def _each(arrays):
    return arrays if isinstance(arrays, (list, tuple)) else [arrays]


@KVStoreBase.register
class TestStore(KVStoreBase):
    """Sums over the arrays that are given, and keeps nothing: for tests of training loops."""

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
