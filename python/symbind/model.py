"""Checkpoints, the older FeedForward, and what custom training loops use of mxnet.model."""

import logging as _logging
import math as _math
from collections import namedtuple as _namedtuple

import numpy as _np

from . import _symbind
from . import metric as _metric
from ._symbind import MXNetTypeError, MXNetValueError, NDArray
from .log import logger_of as _logger_of
from .symbol._methods import _without_amp_cast

BASE_ESTIMATOR = object
SKLEARN_INSTALLED = False
BatchEndParam = _namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])


def save_checkpoint(prefix, epoch, symbol, arg_params, aux_params, remove_amp_cast=True):
    """Writes prefix-symbol.json (where there is a symbol) and prefix-EPOCH.params."""
    if symbol is not None and remove_amp_cast:
        symbol = _without_amp_cast(symbol)
    _symbind._save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_checkpoint(prefix, epoch):
    """(symbol, arg_params, aux_params) of a checkpoint."""
    return _symbind._load_checkpoint(prefix, epoch)


def load_params(prefix, epoch):
    """(arg_params, aux_params) of a checkpoint."""
    return _symbind._load_params(prefix, epoch)


def _create_kvstore(kvstore, num_device, arg_params):
    """(store or None, does it update?) for a name, a store or None."""
    return _symbind._create_kvstore(kvstore, num_device, arg_params)


def _create_sparse_kvstore(kvstore):
    """(store, True) for a name or a store: parameters that were row_sparse in MXNet are updated in the store."""
    if kvstore is None:
        raise MXNetTypeError("sparse parameters need a store: a KVStore or its name")
    return (_symbind.create_kvstore(kvstore) if isinstance(kvstore, str) else kvstore), True


def _initialize_kvstore(kvstore, param_arrays, arg_params, param_names, update_on_kvstore):
    """Puts the parameters into the store, and back onto the devices where the store updates them."""
    for index, on_devices in enumerate(param_arrays):
        name = param_names[index]
        kvstore.init(name, arg_params[name])
        if update_on_kvstore:
            kvstore.pull(name, on_devices, priority=-index)


def _update_params_on_kvstore(param_arrays, grad_arrays, kvstore, param_names=None):
    """Pushes gradients and pulls the parameters that the store has updated. Without names, as before MXNet 0.11, their
    keys are numbers."""
    for index, (weights, grads) in enumerate(zip(param_arrays, grad_arrays)):
        if grads[0] is None:
            continue
        key = index if param_names is None else param_names[index]
        kvstore.push(key, grads, priority=-index)
        kvstore.pull(key, weights, priority=-index)


_update_params_on_kvstore_nccl = _update_params_on_kvstore


def _update_params(param_arrays, grad_arrays, updater, num_device, kvstore=None, param_names=None):
    """Updates parameters on their devices, with gradients summed by the store where there is one."""
    for index, (weights, grads) in enumerate(zip(param_arrays, grad_arrays)):
        if grads[0] is None:
            continue
        if kvstore:
            key = index if param_names is None else param_names[index]
            kvstore.push(key, grads, priority=-index)
            kvstore.pull(key, grads, priority=-index)
        for device, (weight, grad) in enumerate(zip(weights, grads)):
            updater(index * num_device + device, grad, weight)


def _multiple_callbacks(callbacks, *args, **kwargs):
    """Calls one callback, or each of a list; None is none."""
    if isinstance(callbacks, list):
        for callback in callbacks:
            callback(*args, **kwargs)
    elif callbacks:
        callbacks(*args, **kwargs)


def _counting_from_one(callbacks):
    """The callbacks with `nbatch` as FeedForward counts, from 1; a Module counts from 0."""

    def counting(callback):
        return lambda param: callback(param._replace(nbatch=param.nbatch + 1))

    several = callbacks if isinstance(callbacks, (list, tuple)) else [] if callbacks is None else [callbacks]
    return [counting(callback) if callable(callback) else callback for callback in several]


def _limited(iterator, epoch_size):
    """Epochs of `epoch_size` batches, each going on where the last one ended; of 3.5 the fourth batch ends an epoch."""
    from .io import ResizeIter

    if epoch_size is None:
        return iterator
    limited = ResizeIter(iterator, _math.ceil(epoch_size), reset_internal=False)
    if hasattr(iterator, "default_bucket_key"):
        limited.default_bucket_key = iterator.default_bucket_key
    return limited


def _module_for(symbol, sym_gen, iterator, ctx, logger=None, work_load_list=None, predicted_with=None):
    """A module of a network and its inputs as an iterator describes them; with sym_gen one of buckets. To predict with
    given parameters, every other argument is a label, whatever the iterator has: zeros unless it is bound."""
    from .module import BucketingModule, Module

    data_names = [desc[0] for desc in iterator.provide_data]
    labels = [desc[0] for desc in iterator.provide_label or []]
    options = {"logger": logger or _logging, "context": ctx, "work_load_list": work_load_list}

    def label_names(network):
        arguments = network.list_arguments()
        if predicted_with is None:
            return [name for name in labels if name in arguments]
        return [name for name in arguments if name not in data_names and name not in predicted_with]

    if sym_gen is None:
        return Module(symbol, data_names, label_names(symbol), **options)

    def described(key):
        network = sym_gen(key)
        return network, data_names, label_names(network)

    return BucketingModule(described, iterator.default_bucket_key, **options)


def _train_multi_device(
    symbol,
    ctx,
    arg_names,
    param_names,
    aux_names,
    arg_params,
    aux_params,
    begin_epoch,
    end_epoch,
    epoch_size,
    optimizer,
    kvstore,
    update_on_kvstore,
    train_data,
    eval_data=None,
    eval_metric=None,
    epoch_end_callback=None,
    batch_end_callback=None,
    logger=None,
    work_load_list=None,
    monitor=None,
    eval_end_callback=None,
    eval_batch_end_callback=None,
    sym_gen=None,
):
    """Trains on several devices from arg_params and aux_params; their arrays then hold the trained values. The
    kvstore decides where the parameters are updated."""
    data = _limited(train_data, epoch_size)
    module = _module_for(symbol, sym_gen, data, ctx, logger, work_load_list)
    data.reset()
    module.fit(
        data,
        eval_data=eval_data,
        eval_metric=eval_metric,
        epoch_end_callback=epoch_end_callback,
        batch_end_callback=_counting_from_one(batch_end_callback),
        kvstore=kvstore,
        optimizer=optimizer,
        eval_end_callback=eval_end_callback,
        eval_batch_end_callback=eval_batch_end_callback,
        arg_params={name: array for name, array in arg_params.items() if name in param_names},
        aux_params=aux_params,
        begin_epoch=begin_epoch,
        num_epoch=end_epoch,
        monitor=monitor,
    )
    for trained, into in zip(module.get_params(), (arg_params, aux_params)):
        for name, array in trained.items():
            array.copyto(into[name])


class FeedForward:
    """The model class before Module, for scripts that use it: fit and predict over a Module. The symbol
    may be a function from bucket keys to symbols."""

    def __init__(
        self,
        symbol,
        ctx=None,
        num_epoch=None,
        epoch_size=None,
        optimizer="sgd",
        initializer=None,
        numpy_batch_size=128,
        arg_params=None,
        aux_params=None,
        allow_extra_params=False,
        begin_epoch=0,
        **kwargs,
    ):
        generated = not isinstance(symbol, _symbind.Symbol) and callable(symbol)
        self.symbol = None if generated else symbol
        self.sym_gen = symbol if generated else None
        self.ctx = [_symbind.cpu()] if ctx is None else list(ctx) if isinstance(ctx, (list, tuple)) else [ctx]
        self.num_epoch = num_epoch
        self.epoch_size = epoch_size
        self.optimizer = optimizer
        self.initializer = initializer
        self.numpy_batch_size = numpy_batch_size
        self.arg_params = arg_params
        self.aux_params = aux_params
        self.allow_extra_params = allow_extra_params
        self.begin_epoch = begin_epoch
        self.kwargs = kwargs
        self.argument_checked = False
        self._pred_exec = None

    def __getstate__(self):
        return {**self.__dict__, "_pred_exec": None}

    def __setstate__(self, state):
        self.__dict__.update(state)

    @staticmethod
    def _is_data_arg(name):
        """Does a name look like that of an input?"""
        return name.endswith(("data", "label"))

    def _check_arguments(self):
        """Fails where arguments share a name; with allow_extra_params, forgets parameters that the network lacks."""
        from .executor_manager import _check_arguments

        if self.argument_checked or self.symbol is None:
            return
        self.argument_checked = True
        _check_arguments(self.symbol)
        if self.allow_extra_params:
            self.arg_params = _restricted(self.arg_params, self.symbol.list_arguments())
            self.aux_params = _restricted(self.aux_params, self.symbol.list_auxiliary_states())

    def _init_params(self, inputs, overwrite=False):
        """Values for parameters that have none, or for all; returns the names of arguments, parameters and states."""
        from .initializer import InitDesc, Uniform
        from .io import DataDesc
        from .ndarray import zeros

        known = set(self.symbol.list_arguments())
        inputs = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in inputs if desc[0] in known]
        shapes = {desc.name: desc.shape for desc in inputs}
        types = {desc.name: desc.dtype for desc in inputs}
        arg_shapes, _, aux_shapes = self.symbol.infer_shape(**shapes)
        arg_types, _, aux_types = self.symbol.infer_type(**types)
        arg_names, aux_names = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        attributes = self.symbol.attr_dict()
        initializer = self.initializer or Uniform(0.01)

        def values(names, all_shapes, all_types, known):
            made = {}
            for name, shape, dtype in zip(names, all_shapes, all_types):
                if name in shapes:
                    continue
                made[name] = zeros(shape, dtype=dtype)
                if known and name in known and not overwrite:
                    known[name].copyto(made[name])
                else:
                    initializer(InitDesc(name, attributes.get(name, {})), made[name])
            return made

        self.arg_params = values(arg_names, arg_shapes, arg_types, self.arg_params)
        self.aux_params = values(aux_names, aux_shapes, aux_types, self.aux_params)
        return arg_names, list(self.arg_params), aux_names

    def _init_predictor(self, input_shapes, type_dict=None):
        """An executor for these shapes with the parameters, in _pred_exec."""
        shapes = {desc[0]: tuple(desc[1]) for desc in input_shapes}
        if self._pred_exec is not None:
            arg_shapes, _, _ = self.symbol.infer_shape(**shapes)
            if [array.shape for array in self._pred_exec.arg_arrays] == arg_shapes:
                return
        executor = self.symbol.simple_bind(self.ctx[0], grad_req="null", type_dict=type_dict, **shapes)
        executor.copy_params_from(self.arg_params, self.aux_params)
        self._pred_exec = executor

    def _init_iter(self, X, y, is_train):
        """An iterator as it is; arrays become one."""
        from .io import NDArrayIter

        if not isinstance(X, (_np.ndarray, NDArray)):
            if isinstance(X, (list, tuple)):
                raise MXNetTypeError("X must be a data iterator, an NDArray or a NumPy array, not a list")
            return X
        if y is None:
            if is_train:
                raise MXNetValueError("data in an array needs labels: give y")
            y = _np.zeros(X.shape[0], dtype=_np.float32)
        y = _np.asarray(y.asnumpy() if isinstance(y, NDArray) else y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.flatten()
        if X.shape[0] != y.shape[0]:
            raise MXNetValueError(f"there are {X.shape[0]} samples and {y.shape[0]} labels")
        return NDArrayIter(
            X,
            y,
            batch_size=min(X.shape[0], self.numpy_batch_size),
            shuffle=is_train,
            last_batch_handle="roll_over" if is_train else "pad",
        )

    def _init_eval_iter(self, eval_data):
        """An iterator of what fit takes for eval_data: an iterator, or arrays or lists of data and labels."""
        if isinstance(eval_data, (tuple, list)) and len(eval_data) == 2:
            data, labels = (_np.array(part) if isinstance(part, list) else part for part in eval_data)
            return self._init_iter(data, labels, is_train=False)
        if isinstance(eval_data, (_np.ndarray, NDArray, tuple, list)):
            raise MXNetTypeError("eval_data must be a data iterator or a pair of data and labels")
        return eval_data

    def fit(
        self,
        X,
        y=None,
        eval_data=None,
        eval_metric="acc",
        epoch_end_callback=None,
        batch_end_callback=None,
        kvstore="local",
        logger=None,
        work_load_list=None,
        monitor=None,
        eval_end_callback=None,
        eval_batch_end_callback=None,
    ):
        """Trains on arrays or on an iterator; the parameters are then in arg_params and aux_params."""
        if self.num_epoch is None:
            raise MXNetValueError("FeedForward needs num_epoch to be fitted")
        train_data = self._init_iter(X, y, is_train=True)
        if train_data is X:
            train_data.reset()
        train_data = _limited(train_data, self.epoch_size)
        eval_data = self._init_eval_iter(eval_data)
        if self.sym_gen:
            self.symbol = self.sym_gen(train_data.default_bucket_key)
        self._check_arguments()
        self._init_params([*train_data.provide_data, *(train_data.provide_label or [])])
        module = _module_for(self.symbol, self.sym_gen, train_data, self.ctx, logger, work_load_list)
        train_data.reset()  # it may have been used before
        _logger_of(logger).info("Start training with %s", str(self.ctx))
        module.fit(
            train_data,
            eval_data=eval_data,
            eval_metric=eval_metric,
            epoch_end_callback=epoch_end_callback,
            batch_end_callback=_counting_from_one(batch_end_callback),
            kvstore=kvstore,
            optimizer=self.optimizer,
            optimizer_params=self.kwargs or (("learning_rate", 0.01),),
            eval_end_callback=eval_end_callback,
            eval_batch_end_callback=eval_batch_end_callback,
            initializer=self.initializer,
            arg_params=self.arg_params,
            aux_params=self.aux_params,
            allow_missing=True,
            begin_epoch=self.begin_epoch,
            num_epoch=self.num_epoch,
            monitor=monitor,
        )
        self.arg_params, self.aux_params = module.get_params()
        self._pred_exec = None

    def _bound(self, iterator):
        """A module for prediction with the parameters as they are."""
        if self.arg_params is None:
            raise MXNetValueError("there are no parameters yet: fit the model, or load them")
        self._check_arguments()
        module = _module_for(self.symbol, self.sym_gen, iterator, self.ctx, predicted_with=self.arg_params)
        if self.symbol is not None:
            known = {*self.symbol.list_arguments(), *self.symbol.list_auxiliary_states()}
            extra = sorted({*self.arg_params, *(self.aux_params or {})} - known)
            if extra:
                raise MXNetValueError(
                    f"there are values for names that the network does not have: {', '.join(extra)}; "
                    "allow_extra_params=True leaves them out"
                )
        module.bind(iterator.provide_data, self._labels_to_bind(iterator, module.label_names), for_training=False)
        # Values of data and labels, as an executor's arg_dict has them, are no parameters.
        module.set_params(*self._values_to_predict_with(iterator), allow_extra=True)
        return module

    def _labels_to_bind(self, iterator, names):
        """Descriptions of labels of these names, or None. Predictions need no labels, and an array's are made up; but
        buckets have labels of their own shapes, and in some networks these do not follow from the data."""
        labels = [desc for desc in iterator.provide_label or [] if desc[0] in names]
        if self.sym_gen is None:
            shapes, _, _ = self.symbol.infer_shape_partial(**{desc[0]: desc[1] for desc in iterator.provide_data})
            inferred = {name for name, shape in zip(self.symbol.list_arguments(), shapes) if min(shape, default=0) > 0}
            if inferred.issuperset(desc[0] for desc in labels):
                return None
        return labels or None

    def _values_to_predict_with(self, iterator):
        """(arg_params, aux_params); of an executor that a script has made with _init_predictor() those that it has."""
        if self._pred_exec is None:
            return self.arg_params, self.aux_params or {}
        self._init_predictor(iterator.provide_data)
        return _restricted(self._pred_exec.arg_dict, self.arg_params), self._pred_exec.aux_dict

    def predict(self, X, num_batch=None, return_data=False, reset=True):
        """Outputs as NumPy arrays; with return_data also the data and labels they belong to."""
        iterator = self._init_iter(X, None, is_train=False)
        module = self._bound(iterator)
        outputs, data, labels = [], [], []
        for parts, _, batch in module.iter_predict(iterator, num_batch, reset):
            outputs.append([part.asnumpy() for part in parts])
            if return_data:
                size = batch.data[0].shape[0] - (batch.pad or 0)
                data.append([array.asnumpy()[:size] for array in batch.data])
                labels.append([array.asnumpy()[:size] for array in batch.label or []])

        def joined(batches):
            columns = [_np.concatenate(column) for column in zip(*batches)]
            return columns[0] if len(columns) == 1 else columns

        if return_data:
            return joined(outputs), joined(data), joined(labels)
        return joined(outputs)

    def score(self, X, eval_metric="acc", num_batch=None, batch_end_callback=None, reset=True):
        """The value of a metric over an iterator with labels, a list for a list of metrics; the labels of an array are
        zeros, as in MXNet."""
        iterator = self._init_iter(X, None, is_train=False)
        module = self._bound(iterator)
        metric = _metric.create(eval_metric)
        module.score(iterator, metric, num_batch, batch_end_callback, reset=reset)
        return metric.get()[1]

    def save(self, prefix, epoch=None, remove_amp_cast=True):
        """A checkpoint of the model."""
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None:
            raise MXNetValueError("the epoch of the checkpoint must be given")
        save_checkpoint(prefix, epoch, self.symbol, self.arg_params, self.aux_params)

    @staticmethod
    def load(prefix, epoch, ctx=None, **kwargs):
        """A model from a checkpoint."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx=ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)

    @staticmethod
    def create(
        symbol,
        X,
        y=None,
        ctx=None,
        num_epoch=None,
        epoch_size=None,
        optimizer="sgd",
        initializer=None,
        eval_data=None,
        eval_metric="acc",
        epoch_end_callback=None,
        batch_end_callback=None,
        kvstore="local",
        logger=None,
        work_load_list=None,
        eval_end_callback=None,
        eval_batch_end_callback=None,
        **kwargs,
    ):
        """A model that is constructed and trained in one call."""
        model = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        model.fit(
            X,
            y,
            eval_data,
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            logger,
            work_load_list,
            eval_end_callback=eval_end_callback,
            eval_batch_end_callback=eval_batch_end_callback,
        )
        return model


def _restricted(params, names):
    """The parameters that have one of the names."""
    return params and {name: array for name, array in params.items() if name in names}
