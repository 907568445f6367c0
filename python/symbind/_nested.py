"""Flattens lists of lists and restores them: the arguments and results of loop bodies."""

from ._symbind import MXNetTypeError


def flatten(nested, kind, what):
    """All objects of `kind` in order, and how they were nested: None for a single one, else a list of such."""
    if isinstance(nested, kind):
        return [nested], None
    if not isinstance(nested, (list, tuple)):
        raise MXNetTypeError(f"{what} must be a {kind.__name__} or a list of them, not {type(nested).__name__}")
    flat, form = [], []
    for each in nested:
        parts, inner = flatten(each, kind, what)
        flat += parts
        form.append((len(parts), inner))
    return flat, form


def regroup(flat, form):
    """The flat list in its old form."""
    if form is None:
        return flat[0]
    groups, start = [], 0
    for count, inner in form:
        groups.append(regroup(flat[start : start + count], inner))
        start += count
    return groups
