"""NameManager: names for symbols that are given none."""

from . import _symbind


class NameManager:
    """``with NameManager():`` starts new counters; a subclass with its own ``get(name, hint)`` decides names itself."""

    def __init__(self):
        self._counter = {}
        self._guards = []

    def get(self, name, hint):
        """`name` if there is one, else the hint with a number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self):
        self._guards.append(_symbind._NamesGuard(self))
        return self

    def __exit__(self, *exception):
        self._guards.pop().close()


class Prefix(NameManager):
    """Puts a prefix before every name, given or made."""

    def __init__(self, prefix):
        super().__init__()
        self._prefix = prefix

    def get(self, name, hint):
        return self._prefix + super().get(name, hint)


class _Current:
    def get(self, name, hint):
        return _symbind._current_name(name or "", hint)


NameManager.current = _Current()  # the manager in effect
