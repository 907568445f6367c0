"""split_v2 and histogram, whose arguments decide about the operator's parameters; for symbols and for arrays."""

import numpy as _np

from . import _symbind


def _call(op, operands, attributes, symbolic):
    found = _symbind._require_op(op)
    return found.on_symbols(operands, attributes, op) if symbolic else found.on_arrays(operands, attributes)


def split_v2(ary, indices_or_sections, axis=0, squeeze_axis=False, *, symbolic):
    """Equal parts, or parts that begin at the given indices; the first part begins at 0."""
    attributes = {"axis": axis, "squeeze_axis": squeeze_axis}
    if isinstance(indices_or_sections, (int, _np.integer)):
        sections = int(indices_or_sections)
        if not symbolic and (sections < 1 or ary.shape[axis] % sections != 0):
            raise _symbind.MXNetValueError(
                f"an axis of {ary.shape[axis]} elements cannot be split into {sections} equal parts"
            )
        attributes.update(indices=(), sections=sections)
    elif isinstance(indices_or_sections, (tuple, list)):
        attributes.update(indices=(0, *indices_or_sections))
    else:
        raise _symbind.MXNetValueError(
            "indices_or_sections must be a number of parts, or a tuple of the indices where parts begin"
        )
    return _call("_split_v2", (ary,), attributes, symbolic)


def histogram(a, bins, range, symbolic, attributes=None):
    """The counts and the edges of the bins."""
    kind = _symbind.Symbol if symbolic else _symbind.NDArray
    attributes = dict(attributes or {})
    if isinstance(bins, kind):
        return _call("_histogram", (a, bins), attributes, symbolic)
    if not isinstance(bins, (int, _np.integer)):
        raise _symbind.MXNetValueError(
            f"bins must be a number of bins or their edges, {'a symbol' if symbolic else 'an array'}"
        )
    if range is None:
        if symbolic:
            raise _symbind.MXNetValueError("bins as a number needs range")
        range = (float(a.min().asscalar()), float(a.max().asscalar()))
    return _call("_histogram", (a,), {**attributes, "bin_cnt": int(bins), "range": tuple(range)}, symbolic)
