"""Functions made from the registry of operators: one for each name and alias, built when it is first asked for."""

import numbers as _numbers
import operator as _operator
import sys as _sys
import types as _types

import numpy as _np

from . import _symbind


def _python_default(text):
    """A default as Python would write it."""
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    if text.startswith(("(", "[")) and text.endswith((")", "]")):
        inner = [part.strip() for part in text[1:-1].split(",") if part.strip()]
        return tuple(_python_default(part) for part in inner)
    return text


def signature_of(op, symbolic):
    """What a call takes: inputs, then parameters, then name and attr (symbols) or out (arrays)."""
    from inspect import Parameter, Signature
    from keyword import iskeyword

    keyword = Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    if op.takes_any:
        parameters.append(Parameter("args", Parameter.VAR_POSITIONAL))
        keyword = Parameter.KEYWORD_ONLY
    else:
        for name in [*op.inputs, *op.aux]:
            parameters.append(Parameter(name, keyword, default=None))
    taken = {parameter.name for parameter in parameters}
    for name, _, default, _ in op.fields:
        if name not in taken and name.isidentifier() and not iskeyword(name):
            taken.add(name)
            value = None if default is None else _python_default(default)
            parameters.append(Parameter(name, keyword, default=value))
    for name in ("name", "attr") if symbolic else ("out",):
        if name not in taken:
            parameters.append(Parameter(name, keyword, default=None))
    parameters.append(Parameter("kwargs", Parameter.VAR_KEYWORD))
    return Signature(parameters)


def docstring_of(op, symbolic):
    """The operator's own words, its inputs and its parameters."""
    lines = [op.doc, "", "Parameters", "----------"]
    kind = "Symbol" if symbolic else "NDArray"
    if op.takes_any:
        lines.append(f"args : any number of {kind}")
    else:
        lines += [f"{name} : {kind}" for name in [*op.inputs, *op.aux]]
    for name, kind_of, default, doc in op.fields:
        lines.append(f"{name} : {kind_of}, {'required' if default is None else 'default ' + (default or repr(''))}")
        if doc:
            lines.append(f"    {doc}")
    return "\n".join(lines)


def make_function(name, op, symbolic, module):
    """The operator as a function. A node without a name is named after the name it was called by."""
    if symbolic:
        on_symbols = op.on_symbols

        def function(*args, **kwargs):
            return on_symbols(args, kwargs, name)

    else:
        on_arrays = op.on_arrays

        def function(*args, **kwargs):
            return on_arrays(args, kwargs)

    function.__name__ = name
    function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = docstring_of(op, symbolic)
    function.__signature__ = signature_of(op, symbolic)
    return function


def random_like_functions(symbolic, module):
    """normal_like(data, loc, scale) and the others: numbers of a distribution in the shape and type of `data`."""
    functions = {}
    for op in _symbind._list_ops():
        if op.startswith("_random_") and op.endswith("_like"):
            name = op.removeprefix("_random_")
            functions[name] = make_function(name, _symbind._require_op(op), symbolic, module)
    return functions


def _number(value):
    """A scalar as it is written in JSON: 2 stays 2."""
    return int(value) if isinstance(value, _numbers.Integral) else float(value)


def on_pair(kind, lhs, rhs, both_numbers, pair_op, scalar_op, reversed_op):
    """An operator of two operands, each of which may be of `kind` (Symbol or NDArray) or a number."""

    def call(op, operands, kwargs):
        found = _symbind._require_op(op)
        if kind is _symbind.Symbol:
            return found.on_symbols(operands, kwargs, op)  # a node without a name is named after `op`
        return found.on_arrays(operands, kwargs)

    if isinstance(lhs, kind) and isinstance(rhs, kind):
        return call(pair_op, (lhs, rhs), {})
    if isinstance(lhs, kind):
        return call(scalar_op, (lhs,), {"scalar": _number(rhs)})
    if isinstance(rhs, kind):
        return call(reversed_op, (rhs,), {"scalar": _number(lhs)})
    return both_numbers(lhs, rhs)


# NumPy's functions of Python's operators, for a number of NumPy's on the left: np.float32(2) * a.
_OPERATORS = {
    "add": _operator.add,
    "subtract": _operator.sub,
    "multiply": _operator.mul,
    "divide": _operator.truediv,
    "true_divide": _operator.truediv,  # its name before NumPy 1.25
    "power": _operator.pow,
    "remainder": _operator.mod,
    "equal": _operator.eq,
    "not_equal": _operator.ne,
    "less": _operator.lt,
    "less_equal": _operator.le,
    "greater": _operator.gt,
    "greater_equal": _operator.ge,
}


def with_numpy_number(kind, ufunc, method, inputs, kwargs):
    """Python's operator instead of NumPy's function, between objects of `kind` and numbers; else None."""
    operator = _OPERATORS.get(ufunc.__name__) if method == "__call__" and not kwargs else None
    if operator is None or not all(isinstance(each, kind) or _np.ndim(each) == 0 for each in inputs):
        return None
    return operator(*(each if isinstance(each, kind) else float(each) for each in inputs))


class Namespace:
    """The operators whose names begin with a prefix ("_contrib_"), as attributes of a module."""

    def __init__(self, module, symbolic, prefixes=("",), private=False):
        self.module = module
        self.symbolic = symbolic
        self.prefixes = prefixes
        self.private = private

    def find(self, name):
        """The function of that name; raises AttributeError with the reason where there is none."""
        if name.startswith("__"):
            raise AttributeError(f"module '{self.module}' has no attribute '{name}'")
        for prefix in self.prefixes:
            op = _symbind._find_op(prefix + name)
            if op is not None:
                return make_function(name, op, self.symbolic, self.module)
        raise AttributeError(f"module '{self.module}' has no attribute '{name}': Symbind has no operator of that name")

    def names(self):
        found = set()
        for name in _symbind._list_ops():
            for prefix in self.prefixes:
                if name.startswith(prefix):
                    short = name[len(prefix) :]
                    if short and short.isidentifier() and (self.private or not short.startswith("_")):
                        found.add(short)
        return sorted(found)


def install(module_globals, symbolic, prefixes=("",), private=False):
    """Gives a module `__getattr__`, `__dict__` and `__all__` over the registry; what it defines itself comes first."""
    namespace = Namespace(module_globals["__name__"], symbolic, prefixes, private)
    own = [name for name in module_globals if not name.startswith("_")]

    def __getattr__(name):
        if name == "__all__":
            module_globals["__all__"] = value = sorted({*own, *namespace.names()})
            return value
        module_globals[name] = function = namespace.find(name)
        return function

    is_complete = False

    class Module(_types.ModuleType):
        """A module in which vars(), __dict__ and dir() show every function: the first of them builds all."""

        @property
        def __dict__(self):
            nonlocal is_complete
            if not is_complete:
                for name in namespace.names():
                    if name not in module_globals:
                        module_globals[name] = namespace.find(name)
                is_complete = True
            return module_globals

    module_globals["__getattr__"] = __getattr__
    _sys.modules[module_globals["__name__"]].__class__ = Module


def install_method(cls, name, function):
    """Adds a method to a C++ class, under the name that errors about its arguments show."""
    function.__name__ = name
    function.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, function)
