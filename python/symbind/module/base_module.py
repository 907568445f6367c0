"""BaseModule, and the small functions that scripts take from its file."""

import logging as _logging

from .._symbind import BaseModule, MXNetValueError, _check_input_names
from ..base import _as_list
from ..io import DataDesc
from ..model import BatchEndParam

__all__ = ["BaseModule", "BatchEndParam", "_as_list", "_check_input_names", "_parse_data_desc"]

BaseModule.__module__ = __name__
BaseModule.logger = _logging  # a subclass may set another


def _parse_data_desc(data_names, label_names, data_shapes, label_shapes):
    """Descriptions of data and labels from descriptions or (name, shape) pairs; the names must be those given."""
    described = []
    for names, shapes in ((data_names, data_shapes), (label_names, label_shapes)):
        if shapes is None:
            described.append(None)
            continue
        descs = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in shapes]
        if sorted(names) != sorted(desc.name for desc in descs):
            raise MXNetValueError(f"shapes describe {[desc.name for desc in descs]}, but the names are {list(names)}")
        described.append(descs)
    return tuple(described)


def _check_names_match(data_names, data_shapes, name, throw):
    """Do the descriptions have these names? Raises, or warns."""
    actual = [desc[0] for desc in data_shapes]
    if sorted(data_names) != sorted(actual):
        message = f"{name}_shapes describe {actual}, but {name}_names are {list(data_names)}"
        if throw:
            raise MXNetValueError(message)
        _logging.getLogger().warning(message)


# Modules that are no single network have none.
BaseModule.symbol = property(lambda self: self.__dict__.get("_symbol"), doc="The network, where there is one.")
