"""AttrScope: attributes for every symbol made in a `with` block."""

from . import _symbind


class AttrScope:
    """``with AttrScope(ctx_group="dev1"):`` sets these attributes (strings) on every symbol created inside."""

    def __init__(self, **attributes):
        for value in attributes.values():
            if not isinstance(value, str):
                raise _symbind.MXNetValueError("attributes are texts")
        self._attributes = attributes
        self._guards = []

    def get(self, attr):
        """The attributes of this scope with those of `attr` over them."""
        return {**self._attributes, **(attr or {})}

    def __enter__(self):
        self._guards.append(_symbind._AttrScopeGuard(self._attributes))
        return self

    def __exit__(self, *exception):
        self._guards.pop().close()


class _Current:
    def get(self, attr):
        return {**_symbind._current_attributes(), **(attr or {})}


AttrScope.current = _Current()  # the scope in effect
