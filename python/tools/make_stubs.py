"""Writes stubs into a package that was built: what editors and type checkers read to complete and check calls.

`_symbind.pyi` holds the classes with everything Python adds to them; a module whose functions come from the registry
gets a stub with one typed function per operator, its real defaults and its documentation.

usage: make_stubs.py PACKAGE_FOLDER
"""

import ast
import importlib
import inspect
import keyword
import os
import re
import sys
import textwrap
import types

HEAD = '"""Written by python/tools/make_stubs.py: change the sources, not this file."""\n\n'
# Modules made from the registry, and whether their operators take symbols.
REGISTRY_MODULES = {
    "symbind.symbol": True,
    "symbind.symbol.op": True,
    "symbind.symbol.contrib": True,
    "symbind.symbol.image": True,
    "symbind.symbol.linalg": True,
    "symbind.symbol._internal": True,
    "symbind.ndarray": False,
    "symbind.ndarray.op": False,
    "symbind.ndarray.contrib": False,
    "symbind.ndarray.image": False,
    "symbind.ndarray.linalg": False,
    "symbind.ndarray._internal": False,
}
# The Python type of a parameter, by its type in the registry.
PARAMETER_TYPES = {
    "int": "int",
    "float": "float",
    "boolean": "bool",
    "string": "str",
    "tuple": "int | Sequence[int]",
    "tuple of floats": "Sequence[float]",
}


def parameter_type(text):
    """A type of the registry ("int", "tuple or None") as an annotation."""
    return PARAMETER_TYPES.get(text.removesuffix(" or None"), "Any")


def literal(value):
    """A default, if it can be written down."""
    if isinstance(value, bool | int | float | str | None):
        text = repr(value)
        return text if text not in ("inf", "-inf", "nan") else "..."
    if isinstance(value, tuple | list):
        parts = [literal(part) for part in value]
        if "..." not in parts:
            return (
                f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
                if isinstance(value, tuple)
                else f"[{', '.join(parts)}]"
            )
    return "..."


def docstring(text, indent):
    """A docstring of its own lines; backslashes and quotes cannot end it."""
    if not text:
        return ""
    text = inspect.cleandoc(text).replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text += " "
    lines = text.splitlines()
    body = "\n".join([lines[0], *(indent + line if line else "" for line in lines[1:])])
    return f'{indent}"""{body}{chr(10) + indent if len(lines) > 1 else ""}"""\n'


def operator_stub(name, op, symbolic, method=False):
    """One function, or method whose first input is the object, of an operator."""
    from symbind import _functions

    indent = "    " if method else ""
    kind = "Symbol" if symbolic else "NDArray"
    fields = {field: (parameter_type(type_), default) for field, type_, default, _ in op.fields}
    inputs = {*op.inputs, *op.aux}
    parts = ["self"] if method else []
    parameters = list(_functions.signature_of(op, symbolic).parameters.values())
    if method and not op.takes_any and parameters and parameters[0].name in inputs:
        parameters = parameters[1:]
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}: {kind} | Sequence[{kind}]")
        elif parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}: Any")
        elif keyword.iskeyword(parameter.name):
            continue
        elif parameter.name in inputs and parameter.name not in fields:
            parts.append(f"{parameter.name}: {kind} | None = ...")
        elif parameter.name in fields:
            annotation, default = fields[parameter.name]
            if default is None:  # must be given, but inputs before it may be left out
                parts.append(f"{parameter.name}: {annotation} = ...")
            else:
                may_be_none = "" if annotation == "Any" else " | None"
                parts.append(f"{parameter.name}: {annotation}{may_be_none} = {literal(parameter.default)}")
        else:
            annotation = {"name": "str | None", "attr": "dict[str, str] | None"}.get(parameter.name, "Any")
            parts.append(f"{parameter.name}: {annotation} = None")
    result = "Symbol" if symbolic else "Any"
    body = docstring(_functions.docstring_of(op, symbolic), indent + "    ") or f"{indent}    ...\n"
    return f"{indent}def {name}({', '.join(parts)}) -> {result}:\n{body}"


def exported(module):
    """The import statements of a module's source, as a stub repeats them: every name is exported."""
    with open(module.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    lines, names = [], set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "_functions":
                    continue
                inside = importlib.import_module(source, module.__package__).__all__ if alias.name == "*" else ()
                for found in inside or [alias.name]:
                    name = alias.asname or found
                    names.add(name)
                    lines.append(f"from {source} import {found} as {name}")
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            names.add(node.name)
    return lines, names


def registry_stub(name, symbolic):
    """The stub of a module whose functions come from the registry."""
    from symbind import _symbind

    module = importlib.import_module(name)
    up = "." * (name.count(".") + module.__file__.endswith("__init__.py"))
    lines, names = exported(module)
    kind = "Symbol" if symbolic else "NDArray"
    out = [HEAD, "from collections.abc import Sequence\nfrom typing import Any\n\n"]
    if kind not in names:
        lines.append(f"from {up}_symbind import {kind}")
    out.append("\n".join(lines) + "\n\n")
    for short in dir(module):
        function = getattr(module, short)
        if short in names or not isinstance(function, types.FunctionType) or short.startswith("__"):
            continue
        if keyword.iskeyword(short) or getattr(function, "__module__", "") != name:
            continue
        op = next((found for prefix in prefixes_of(name) if (found := _symbind._find_op(prefix + short))), None)
        if op is not None:
            out.append(operator_stub(short, op, symbolic))
    return "".join(out)


def package_stub():
    """The stub of the package itself: what it imports, and the modules it loads when they are first touched."""
    import symbind
    from symbind import _lazy

    lines, _ = exported(symbind)
    for name, module in sorted(_lazy.LAZY.items()):
        package, _, last = module.rpartition(".")
        lines.append(f"from .{package} import {last} as {name}")
    return HEAD + "\n".join(lines) + "\n\n__version__: str\n"


def prefixes_of(name):
    last = name.rsplit(".", 1)[-1]
    return {"contrib": ("_contrib_",), "image": ("_image_",), "linalg": ("_linalg_",)}.get(last, ("",))


def plain_signature(function, name):
    """The signature of a Python function for a stub."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return f"{name}(self, *args: Any, **kwargs: Any) -> Any"
    parts, seen_keyword_only = [], False
    for index, parameter in enumerate(signature.parameters.values()):
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is parameter.VAR_POSITIONAL:
            seen_keyword_only = True
        if parameter.kind is parameter.KEYWORD_ONLY and not seen_keyword_only:
            parts.append("*")
            seen_keyword_only = True
        text = prefix + parameter.name + ("" if index == 0 and parameter.name in ("self", "cls") else ": Any")
        if parameter.default is not parameter.empty:
            text += f" = {literal(parameter.default)}"
        parts.append(text)
    return f"{name}({', '.join(parts)}) -> Any"


def added_members(cls, symbolic):
    """What the package adds to a class of the extension: methods from the registry, and methods written in Python."""
    from symbind import _symbind
    from symbind.ndarray._methods import FLUENT

    out = []
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_") and not (name.startswith("__") and name.endswith("__")):
            continue
        if isinstance(value, types.FunctionType):
            op = _symbind._find_op(name) if name in FLUENT or name == "broadcast_axis" else None
            if op is not None and not keyword.iskeyword(name):
                out.append(operator_stub(name, op, symbolic, method=True))
            else:
                signature = plain_signature(value, name)
                out.append(f"    def {signature}:\n" + (docstring(value.__doc__, "        ") or "        ...\n"))
        elif isinstance(value, property) and isinstance(value.fget, types.FunctionType):
            out.append(
                f"    @property\n    def {name}(self) -> Any:\n"
                + (docstring(value.__doc__, "        ") or "        ...\n")
            )
    return out


def native_signatures(function):
    """(signature, doc) of each overload, with nanobind's numbered defaults written out and names a stub knows."""
    for text, doc, defaults in getattr(function, "__nb_signature__", ()):
        for index in reversed(range(len(defaults or ()))):
            text = text.replace(f"\\{index}", literal(defaults[index]))
        yield re.sub(r"\b(symbind\._symbind|collections\.abc|typing)\.", "", text), doc


def is_python(text):
    try:
        ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return False
    return True


def native_function(name, function, indent):
    """A function or method of the extension."""
    signatures = list(native_signatures(function))
    out = []
    for text, doc in signatures:
        body = docstring(doc, indent + "    ") or f"{indent}    ...\n"
        stub = f"{indent}{text}:\n{body}"
        if not is_python(stub):
            stub = f"{indent}def {name}({'self, ' if indent else ''}*args: Any, **kwargs: Any) -> Any:\n{body}"
        out.append((f"{indent}@overload\n" if len(signatures) > 1 else "") + stub)
    return out


def property_doc(value):
    """The docstring of a property, where it is more than the signature that nanobind puts there."""
    doc = value.__doc__ or ""
    return None if re.fullmatch(r"\(self.*\) -> .*", doc) else doc


def native_property(name, value):
    """A property of a class of the extension."""
    body = docstring(property_doc(value), "        ") or "        ...\n"
    result = next((text.split("->")[-1].strip() for text, _ in native_signatures(value.fget)), "Any")
    if not is_python(result):
        result = "Any"
    stub = f"    @property\n    def {name}(self) -> {result}:\n{body}"
    return stub + (f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...\n" if value.fset else "")


def class_stub(cls, symbolic):
    bases = [base.__name__ for base in cls.__bases__ if base is not object]
    out = [f"class {cls.__name__}{'(' + ', '.join(bases) + ')' if bases else ''}:\n", docstring(cls.__doc__, "    ")]
    members = []
    for name, value in sorted(vars(cls).items()):
        if type(value).__name__ in ("nb_method", "nb_func"):
            members += native_function(name, value, "    ")
        elif isinstance(value, property) and type(value.fget).__name__.startswith("nb_"):
            members.append(native_property(name, value))
    members += added_members(cls, symbolic)
    return "".join(out + (members or ["    ...\n"])) + "\n"


def extension_stub():
    """The stub of _symbind: its classes with what Python adds to them, base classes first, and its functions."""
    from symbind import _symbind

    classes = [value for value in vars(_symbind).values() if isinstance(value, type)]
    classes.sort(key=lambda cls: (len(cls.__mro__), cls.__name__))
    out = [
        HEAD,
        "from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence\n",
        "from typing import Any, Optional, Union, overload\n\nimport numpy\nimport types\n\n",
    ]
    for cls in classes:
        if issubclass(cls, BaseException):
            base = cls.__bases__[0].__name__
            out.append(f"class {cls.__name__}({base}):\n{docstring(cls.__doc__, '    ') or '    ...' + chr(10)}\n")
        else:
            out.append(class_stub(cls, symbolic=cls.__name__ == "Symbol"))
    for name, value in sorted(vars(_symbind).items()):
        if type(value).__name__ == "nb_func":
            out += native_function(name, value, "")
    return "".join(out)


def write(path, text):
    ast.parse(text)  # a stub that is not Python would silence the editor
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    package = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.dirname(package))
    for name, symbolic in REGISTRY_MODULES.items():
        module = importlib.import_module(name)
        inside = os.path.relpath(module.__file__, os.path.dirname(importlib.import_module("symbind").__file__))
        write(os.path.join(package, inside + "i"), registry_stub(name, symbolic))
    write(os.path.join(package, "__init__.pyi"), package_stub())
    write(os.path.join(package, "_symbind.pyi"), extension_stub())


if __name__ == "__main__":
    main()
