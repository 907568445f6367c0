"""The signature of a function as text, the same for MXNet's functions and for ours.

record_api.py writes it, tests/python/api_parity.py compares with it.
"""

import inspect
import types

import numpy as np

KINDS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**", "KEYWORD_ONLY": "keyword", "POSITIONAL_ONLY": "position"}


def default_text(value):
    """A default as text that two libraries can agree on; None where there is none."""
    if value is inspect.Parameter.empty:
        return None
    if type(value).__name__ == "_NullType":
        return "_Null"
    if isinstance(value, (bool, int, float, str, tuple, list, dict, type(None))):
        return repr(value)
    if isinstance(value, (type, np.dtype)):
        return getattr(value, "__name__", str(value))
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.ModuleType)):
        return getattr(value, "__name__", "function").rsplit(".", 1)[-1]
    return type(value).__name__ + "()"


def parameters_text(signature):
    """[[name, kind, default]], with kind "" where it may be given by position and by name."""
    return [[p.name, KINDS.get(p.kind.name, ""), default_text(p.default)] for p in signature.parameters.values()]
