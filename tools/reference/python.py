"""Public classes and functions of the Python package, module by module."""

import dataclasses
import importlib
import inspect
import pkgutil
import re


@dataclasses.dataclass
class Item:
    """A class or function, under the module in which a user finds it."""

    module: str
    name: str
    value: object

    @property
    def full_name(self):
        return f"{self.module}.{self.name}"


def modules():
    """Names of the package's public modules; those in which a user looks first come first."""
    import symbind

    found = ["symbind"]
    for info in pkgutil.walk_packages(symbind.__path__, "symbind."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            found.append(info.name)
    first = ["symbind", "symbind.context", "symbind.ndarray", "symbind.symbol"]
    return first + sorted(set(found) - set(first), key=lambda name: (name.count("."), name))


def items(operator_names):
    """Each class or function once; operators have pages of their own."""
    seen = set()
    every_module = set(modules())
    for name in modules():
        module = importlib.import_module(name)
        listed = vars(module).get("__all__") if name.count(".") else None
        for short in sorted(listed if listed and not _from_registry(module) else vars(module)):
            value = vars(module).get(short)
            if short.startswith("_") or value is None or not _is_ours(value) or id(value) in seen:
                continue
            is_operator = short in operator_names or _is_built_from_registry(value)
            if is_operator and _from_registry(module) and not isinstance(value, type):
                continue
            home = value.__module__
            inside = name != "symbind" and home.startswith(name + ".")  # mx.io shows what mx.io.io defines
            if home != name and home in every_module and not inside:
                continue
            seen.add(id(value))
            yield Item(name, short, value)


def _from_registry(module):
    return "__getattr__" in vars(module) and module.__name__ != "symbind"


def _is_built_from_registry(value):
    return getattr(value, "__globals__", {}).get("__name__") == "symbind._functions"


def _is_ours(value):
    if not (inspect.isclass(value) or inspect.isroutine(value) or type(value).__name__ == "nb_func"):
        return False
    return (getattr(value, "__module__", "") or "").startswith("symbind")


def signatures(name, value, native_signatures):
    """Lines of code that show how a function, method or class is called."""
    native = [text.removeprefix("def ") for text, _ in native_signatures(value)]
    if native:
        return native
    if inspect.isclass(value):
        native = [text.removeprefix("def __init__") for text, _ in native_signatures(vars(value).get("__init__"))]
        if native:
            return [name + text.replace("(self, ", "(").replace("(self)", "()").split(" ->")[0] for text in native]
    try:
        shown = re.sub(r"<class '([\w.]+)'>", r"\1", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return [f"class {name}" if inspect.isclass(value) else f"{name}(...)"]  # a class that users do not construct
    return [name + shown]


def members(cls):
    """(name, value, is property) of a class's own public members, and of bases written in C++ or Python here."""
    found = {}
    for base in reversed(cls.__mro__):
        if (getattr(base, "__module__", "") or "").startswith("symbind"):
            found.update({name: value for name, value in vars(base).items() if not name.startswith("_")})
    for name, value in sorted(found.items()):
        if isinstance(value, property) or type(value).__name__ == "nb_static_property":
            yield name, value, True
        elif isinstance(value, staticmethod | classmethod):
            yield name, value.__func__, False
        elif inspect.isroutine(value) or type(value).__name__ in ("nb_method", "nb_func"):
            yield name, value, False
