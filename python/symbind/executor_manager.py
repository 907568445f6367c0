"""Helpers of the time before Module that scripts still call."""

from . import _symbind
from .ndarray import NDArray


def _split_input_slice(batch_size, work_load_list):
    """The slice of a batch that each device gets, in proportion to its work load; the last takes the rest."""
    try:
        return _symbind._split_input_slice(int(batch_size), [float(load) for load in work_load_list])
    except _symbind.MXNetError as error:
        raise ValueError(str(error)) from None


def _check_arguments(symbol):
    """ValueError where two arguments, or two auxiliary states, have one name."""
    for kind, names in (
        ("argument", symbol.list_arguments()),
        ("auxiliary state", symbol.list_auxiliary_states()),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"each {kind} needs a name of its own, but {', '.join(twice)} occurs twice in {names}")


def _load_general(data, targets):
    """Copies arrays to their targets: an array, or (slice of the batch, array) for each device."""
    for source, target in zip(data, targets):
        if isinstance(target, NDArray):
            source.copyto(target)
        else:
            for part, array in target:
                source[part].copyto(array)


def _load_data(batch, targets):
    """Copies a batch's data to its targets."""
    _load_general(batch.data, targets)


def _load_label(batch, targets):
    """Copies a batch's labels to their targets."""
    _load_general(batch.label, targets)
