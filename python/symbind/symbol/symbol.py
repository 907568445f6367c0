"""Symbol and what makes one, under the path of MXNet's file."""

from .._symbind import Symbol
from ._creation import (
    Group,
    Variable,
    arange,
    eye,
    full,
    hypot,
    linspace,
    load,
    load_json,
    maximum,
    minimum,
    ones,
    pow,
    power,
    var,
    zeros,
)

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "eye",
    "full",
    "hypot",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "var",
    "zeros",
]
