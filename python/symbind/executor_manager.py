"""What scripts from before Module train with: an executor for each device, with a slice of every batch."""

import logging as _logging

from . import _symbind
from .context import cpu
from .io import DataDesc
from .log import logger_of as _logger_of
from .ndarray import NDArray


def _split_input_slice(batch_size, work_load_list):
    """The slice of a batch that each device gets, in proportion to its work load; the last takes the rest."""
    try:
        return _symbind._split_input_slice(int(batch_size), [float(load) for load in work_load_list])
    except _symbind.MXNetError as error:
        raise _symbind.MXNetValueError(str(error)) from None


def _check_arguments(symbol):
    """ValueError where two arguments, or two auxiliary states, have one name."""
    for kind, names in (
        ("argument", symbol.list_arguments()),
        ("auxiliary state", symbol.list_auxiliary_states()),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise _symbind.MXNetValueError(
                f"each {kind} needs a name of its own, but {', '.join(twice)} occurs twice in {names}"
            )


def _load_general(data, targets):
    """Copies arrays to their targets: an array, or (slice of the batch, array) for each device."""
    for source, target in zip(data, targets):
        if isinstance(target, NDArray):
            source.copyto(target)
        else:
            expected = target[-1][0].stop
            if source.shape[0] != expected:
                raise _symbind.MXNetValueError(f"the batch has {source.shape[0]} samples, not {expected}")
            for part, array in target:
                source[part].copyto(array)


def _load_data(batch, targets):
    """Copies a batch's data to its targets."""
    _load_general(batch.data, targets)


def _load_label(batch, targets):
    """Copies a batch's labels to their targets."""
    _load_general(batch.label, targets)


def _bind_exec(
    sym,
    ctx,
    input_shapes,
    param_names,
    need_grad=False,
    base_exec=None,
    shared_data_arrays=None,
    input_types=None,
    logger=_logging,
):
    """An executor with gradients of the parameters, or of a set of names. Parameters are those of base_exec where it is
    given, and inputs are views of shared_data_arrays."""
    if isinstance(need_grad, set):
        wanted = need_grad
    elif isinstance(need_grad, bool):
        wanted = set(param_names) if need_grad else set()
    else:
        raise _symbind.MXNetTypeError(f"need_grad is True, False or a set of names, not {need_grad!r}")
    arguments = sym.list_arguments()
    return sym.simple_bind(
        ctx,
        grad_req={name: "write" if name in wanted else "null" for name in arguments},
        type_dict=input_types,
        shared_arg_names=[name for name in arguments if name not in input_shapes],
        shared_exec=base_exec,
        shared_buffer=shared_data_arrays,
        **input_shapes,
    )


def _described(descriptions):
    return [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in descriptions]


class DataParallelExecutorGroup:
    """An executor per device over the slices of a batch; groups that share have one set of parameters."""

    def __init__(self, sym, arg_names, param_names, ctx, slices, train_data, shared_group=None):
        _check_arguments(sym)
        inputs = _described(train_data.provide_data) + _described(train_data.provide_label)
        if pixels := [desc.name for desc in inputs if desc.normalization is not None]:
            raise _symbind.MXNetValueError(
                f"{', '.join(pixels)}: only modules normalize images on the devices; let the iterator do so "
                "(ImageRecordIter without normalize_on_device)"
            )
        arguments = sym.list_arguments()
        self.data_names = [desc[0] for desc in train_data.provide_data]
        self.label_names = [desc[0] for desc in train_data.provide_label]
        self.aux_names = sym.list_auxiliary_states()
        self.param_idx = [index for index, name in enumerate(arguments) if name in param_names]
        self.param_names = [arguments[index] for index in self.param_idx]
        self.slices = slices
        self.shared_data_arrays = [{} for _ in ctx] if shared_group is None else shared_group.shared_data_arrays
        self.train_execs = []
        for device, (context, part) in enumerate(zip(ctx, slices)):
            self.train_execs.append(
                _bind_exec(
                    sym,
                    context,
                    {desc.name: (part.stop - part.start, *desc.shape[1:]) for desc in inputs},
                    self.param_names,
                    need_grad=True,
                    base_exec=None if shared_group is None else shared_group.train_execs[device],
                    shared_data_arrays=self.shared_data_arrays[device],
                    input_types={desc.name: desc.dtype for desc in inputs},
                )
            )

        def by_device(names, dict_of):
            return [[dict_of(executor)[name] for executor in self.train_execs] for name in names]

        def sliced(names):
            arrays = by_device(names, lambda executor: executor.arg_dict)
            return [list(zip(slices, of_devices)) for of_devices in arrays]

        self.data_arrays = sliced(self.data_names)
        self.label_arrays = sliced(self.label_names)
        self.param_arrays = by_device(self.param_names, lambda executor: executor.arg_dict)
        self.grad_arrays = by_device(self.param_names, lambda executor: executor.grad_dict)
        self.aux_arrays = by_device(self.aux_names, lambda executor: executor.aux_dict)

    def load_data_batch(self, data_batch):
        """Copies a batch to the devices."""
        _load_data(data_batch, self.data_arrays)
        _load_label(data_batch, self.label_arrays)

    def forward(self, is_train=False):
        for executor in self.train_execs:
            executor.forward(is_train=is_train)

    def backward(self):
        for executor in self.train_execs:
            executor.backward()

    def update_metric(self, metric, labels, pre_sliced=False):
        """Updates a metric with the outputs of each device and its slice of the labels."""
        for device, (executor, part) in enumerate(zip(self.train_execs, self.slices)):
            of_device = labels[device] if pre_sliced else [label[part] for label in labels]
            metric.update(of_device, executor.outputs)


class DataParallelExecutorManager:
    """The groups of a network: one, or with sym_gen one for each bucket key of the batches, over shared parameters."""

    def __init__(
        self,
        symbol,
        ctx,
        train_data,
        arg_names=None,
        param_names=None,
        aux_names=None,
        work_load_list=None,
        logger=None,
        sym_gen=None,
    ):
        _logger_of(logger).info("Start training with %s", str(ctx))
        loads = [1] * len(ctx) if work_load_list is None else work_load_list
        if not isinstance(loads, list) or len(loads) != len(ctx):
            raise _symbind.MXNetValueError(
                f"work_load_list must be a list of {len(ctx)} numbers, one for each context: {loads}"
            )
        self.slices = _split_input_slice(train_data.batch_size, loads)
        inputs = [desc[0] for desc in [*train_data.provide_data, *train_data.provide_label]]
        self.arg_names = symbol.list_arguments() if arg_names is None else arg_names
        self.param_names = [n for n in self.arg_names if n not in inputs] if param_names is None else param_names
        self.aux_names = symbol.list_auxiliary_states() if aux_names is None else aux_names
        self.ctx = ctx
        self.symbol = symbol
        self.sym_gen = sym_gen
        self.execgrp = DataParallelExecutorGroup(symbol, self.arg_names, self.param_names, ctx, self.slices, train_data)
        self.curr_execgrp = None  # that of the last batch
        if sym_gen is not None:
            self.execgrp_bucket = {train_data.default_bucket_key: self.execgrp}

    def install_monitor(self, monitor):
        if self.sym_gen is not None:
            raise NotImplementedError("monitors are not supported with buckets here: use BucketingModule")
        for executor in self.execgrp.train_execs:
            monitor.install(executor)

    def set_params(self, arg_params, aux_params):
        """Copies parameters to the devices; names that the network does not have are passed over."""
        for executor in self.execgrp.train_execs:
            executor.copy_params_from(arg_params, aux_params, allow_extra_params=True)

    def copy_to(self, arg_params, aux_params):
        """Writes the mean over the devices into the arrays of both dicts."""
        for names, arrays, into in (
            (self.param_names, self.param_arrays, arg_params),
            (self.aux_names, self.aux_arrays, aux_params),
        ):
            for name, of_devices in zip(names, arrays):
                mean = sum(array.copyto(cpu()) for array in of_devices) / len(of_devices)
                mean.astype(into[name].dtype).copyto(into[name])

    @property
    def param_arrays(self):
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self):
        return self.execgrp.grad_arrays

    @property
    def aux_arrays(self):
        return self.execgrp.aux_arrays

    def load_data_batch(self, data_batch):
        """Copies a batch to the devices, to the group of its bucket."""
        self.curr_execgrp = self.execgrp
        if self.sym_gen is not None:
            key = data_batch.bucket_key
            if key not in self.execgrp_bucket:
                self.execgrp_bucket[key] = DataParallelExecutorGroup(
                    self.sym_gen(key),
                    self.arg_names,
                    self.param_names,
                    self.ctx,
                    self.slices,
                    data_batch,
                    shared_group=self.execgrp,
                )
            self.curr_execgrp = self.execgrp_bucket[key]
        self.curr_execgrp.load_data_batch(data_batch)

    def forward(self, is_train=False):
        self.curr_execgrp.forward(is_train=is_train)

    def backward(self):
        self.curr_execgrp.backward()

    def update_metric(self, metric, labels, pre_sliced=False):
        self.curr_execgrp.update_metric(metric, labels, pre_sliced)
