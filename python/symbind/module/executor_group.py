"""DataParallelExecutorGroup: one network on several devices, and what scripts take from its file."""

import logging as _logging

from .._symbind import Context, DataParallelExecutorGroup, MXNetValueError
from ..executor_manager import _split_input_slice
from ..io import DataDesc
from ..ndarray import NDArray, concat, slice_axis

__all__ = [
    "DataParallelExecutorGroup",
    "_load_data",
    "_load_general",
    "_load_label",
    "_merge_multi_context",
    "_prepare_group2ctxs",
    "_split_input_slice",
]

DataParallelExecutorGroup.__module__ = __name__
DataParallelExecutorGroup.logger = _logging
DataParallelExecutorGroup._default_execs = None  # shapes that were bound before are kept inside


def _load_general(data, targets, major_axis):
    """Copies arrays to their targets: an array, or (slice, array) for each device. major_axis is the axis of samples of
    each array, -1 where every device gets the whole."""
    for source, target, axis in zip(data, targets, major_axis):
        if isinstance(target, NDArray):
            source.copyto(target)
            continue
        for part, array in target:
            whole = axis < 0 or (part.start == 0 and part.stop == source.shape[axis])
            piece = source if whole else slice_axis(source, axis=axis, begin=part.start, end=part.stop)
            piece.copyto(array)


def _load_data(batch, targets, major_axis):
    """Copies a batch's data to its targets."""
    _load_general(batch.data, targets, major_axis)


def _load_label(batch, targets, major_axis):
    """Copies a batch's labels to their targets."""
    _load_general(batch.label, targets, major_axis)


def _merge_multi_context(outputs, major_axis):
    """For each output the arrays of the devices as one, on the first device; where it has no axis of samples (-1) that
    of the first."""
    merged = []
    for arrays, axis in zip(outputs, major_axis):
        if axis < 0 or len(arrays) == 1:
            merged.append(arrays[0])
        else:
            merged.append(concat(*[array.as_in_context(arrays[0].context) for array in arrays], dim=axis))
    return merged


def _prepare_group2ctxs(group2ctxs, ctx_len):
    """For each of ctx_len contexts a dict from groups to contexts: from None, from such dicts, or from a dict whose
    values are one context or a list of them."""
    if group2ctxs is None:
        return [None] * ctx_len
    if isinstance(group2ctxs, list):
        if len(group2ctxs) != ctx_len:
            raise MXNetValueError(f"group2ctxs has {len(group2ctxs)} dicts for {ctx_len} contexts")
        return group2ctxs
    prepared = [{} for _ in range(ctx_len)]
    for group, contexts in group2ctxs.items():
        of_devices = [contexts] * ctx_len if isinstance(contexts, Context) else list(contexts)
        if len(of_devices) == 1:
            of_devices *= ctx_len
        if len(of_devices) != ctx_len:
            raise MXNetValueError(f"group '{group}' has {len(of_devices)} contexts for {ctx_len} devices")
        for dicts, context in zip(prepared, of_devices):
            dicts[group] = context
    return prepared


def _bind_exec(self, data_shapes, label_shapes, shared_group=None, reshape=False):
    """The group for other shapes; a group is bound when it is constructed."""
    self.reshape(data_shapes, label_shapes)


def _decide_slices(self, data_shapes):
    """The axis of the samples of each input, -1 where it has none. How the batch is split over the devices follows from
    the shapes that the group is bound to (slices); an input with another number of samples fails."""
    if not data_shapes:
        raise MXNetValueError("decide_slices takes at least one input")
    axes = []
    for desc in data_shapes:
        desc = desc if isinstance(desc, DataDesc) else DataDesc(*desc)
        axis = DataDesc.get_batch_axis(desc.layout)
        if axis >= 0 and desc.shape[axis] != self.batch_size:
            raise MXNetValueError(
                f"'{desc.name}' has shape {desc.shape}, {desc.shape[axis]} samples; the group has a batch of "
                f"{self.batch_size}: reshape() binds it to other shapes"
            )
        axes.append(axis)
    return axes


DataParallelExecutorGroup.bind_exec = _bind_exec
DataParallelExecutorGroup.decide_slices = _decide_slices
