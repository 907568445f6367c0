"""Registries of classes by name, for users' own families of classes."""

import json as _json
import warnings as _warnings

from ._symbind import MXNetTypeError, MXNetValueError

_REGISTRY = {}  # base class → {lower-case name: class}


def get_registry(base_class):
    """The classes registered under a base class, by name."""
    return dict(_REGISTRY.setdefault(base_class, {}))


def get_register_func(base_class, nickname):
    """A function that registers subclasses of `base_class` under their own or another name."""
    registry = _REGISTRY.setdefault(base_class, {})

    def register(klass, name=None):
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise MXNetTypeError(f"a {nickname} is a subclass of {base_class.__name__}, which {klass!r} is not")
        key = (name or klass.__name__).lower()
        if key in registry and registry[key] is not klass:
            _warnings.warn(
                f"the {nickname} {key} was {registry[key]!r} and is now {klass!r}", UserWarning, stacklevel=2
            )
        registry[key] = klass
        return klass

    register.__doc__ = f"Registers a {nickname}."
    return register


def get_alias_func(base_class, nickname):
    """A decorator that registers a class under further names."""
    register = get_register_func(base_class, nickname)

    def alias(*aliases):
        def decorate(klass):
            for name in aliases:
                register(klass, name)
            return klass

        return decorate

    alias.__doc__ = f"Further names for a {nickname}."
    return alias


def get_create_func(base_class, nickname):
    """A function that makes an instance from a name, from JSON (``["name", {…}]``), or passes an instance through."""
    registry = _REGISTRY.setdefault(base_class, {})

    def create(*args, **kwargs):
        if args:
            name, args = args[0], args[1:]
        else:
            name = kwargs.pop(nickname)
        if isinstance(name, base_class):
            if args or kwargs:
                raise MXNetValueError(f"a {nickname} that is made already takes no further arguments")
            return name
        if isinstance(name, dict):
            return create(**name)
        if not isinstance(name, str):
            raise MXNetTypeError(f"a {nickname} is given by its name or as an instance, not as {type(name).__name__}")
        if name.startswith("["):
            name, kwargs = _json.loads(name)
            return create(name, **kwargs)
        if name.startswith("{"):
            return create(**_json.loads(name))
        if name.lower() not in registry:
            raise MXNetValueError(
                f"no {nickname} is registered as {name!r}; there are {', '.join(sorted(registry)) or 'none'}"
            )
        return registry[name.lower()](*args, **kwargs)

    create.__doc__ = f"A {nickname} by name."
    return create
