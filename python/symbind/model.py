"""Checkpoints, the older FeedForward, and what training loops of one's own take from mxnet.model."""

import logging as _logging
from collections import namedtuple as _namedtuple

import numpy as _np

from . import _symbind
from ._symbind import NDArray
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


def _initialize_kvstore(kvstore, param_arrays, arg_params, param_names, update_on_kvstore):
    """Puts the parameters into the store, and back onto the devices where the store updates them."""
    for index, on_devices in enumerate(param_arrays):
        name = param_names[index]
        kvstore.init(name, arg_params[name])
        if update_on_kvstore:
            kvstore.pull(name, on_devices, priority=-index)


def _update_params_on_kvstore(param_arrays, grad_arrays, kvstore, param_names):
    """Pushes gradients and pulls the parameters that the store has updated."""
    for index, (weights, grads) in enumerate(zip(param_arrays, grad_arrays)):
        if grads[0] is None:
            continue
        kvstore.push(param_names[index], grads, priority=-index)
        kvstore.pull(param_names[index], weights, priority=-index)


def _update_params(param_arrays, grad_arrays, updater, num_device, kvstore=None, param_names=None):
    """Updates parameters on their devices, with gradients summed by the store where there is one."""
    for index, (weights, grads) in enumerate(zip(param_arrays, grad_arrays)):
        if grads[0] is None:
            continue
        if kvstore:
            kvstore.push(param_names[index], grads, priority=-index)
            kvstore.pull(param_names[index], grads, priority=-index)
        for device, (weight, grad) in enumerate(zip(weights, grads)):
            updater(index * num_device + device, grad, weight)


def _counting_from_one(callbacks):
    """The callbacks with `nbatch` as FeedForward counts, from 1; a Module counts from 0."""

    def counting(callback):
        return lambda param: callback(param._replace(nbatch=param.nbatch + 1))

    several = callbacks if isinstance(callbacks, (list, tuple)) else [] if callbacks is None else [callbacks]
    return [counting(callback) if callable(callback) else callback for callback in several]


class FeedForward:
    """The model class that came before Module, kept for scripts that use it: fit and predict over a Module."""

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
        self.symbol = symbol
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

    def _iterator(self, X, y, training):
        """An iterator as it is; arrays become one."""
        from .io import NDArrayIter

        if not isinstance(X, (_np.ndarray, NDArray)):
            if isinstance(X, (list, tuple)):
                raise TypeError("X must be a data iterator, an NDArray or a NumPy array, not a list")
            return X
        if y is None:
            if training:
                raise ValueError("data in an array needs labels: give y")
            y = _np.zeros(X.shape[0], dtype=_np.float32)
        y = _np.asarray(y.asnumpy() if isinstance(y, NDArray) else y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.flatten()
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"there are {X.shape[0]} samples and {y.shape[0]} labels")
        return NDArrayIter(
            X,
            y,
            batch_size=min(X.shape[0], self.numpy_batch_size),
            shuffle=training,
            last_batch_handle="roll_over" if training else "pad",
        )

    def _limited(self, iterator):
        """Epochs of `epoch_size` batches, each going on where the last one ended."""
        from .io import ResizeIter

        return iterator if self.epoch_size is None else ResizeIter(iterator, self.epoch_size, reset_internal=False)

    def _module(self, iterator, logger=None, work_load_list=None):
        from .module import Module

        arguments = set(self.symbol.list_arguments())
        return Module(
            self.symbol,
            data_names=[desc[0] for desc in iterator.provide_data],
            label_names=[desc[0] for desc in iterator.provide_label or [] if desc[0] in arguments],
            logger=logger or _logging,
            context=self.ctx,
            work_load_list=work_load_list,
        )

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
            raise ValueError("FeedForward needs num_epoch to be fitted")
        train_data = self._iterator(X, y, training=True)
        if train_data is X:
            train_data.reset()
        train_data = self._limited(train_data)
        if isinstance(eval_data, (tuple, list)) and len(eval_data) == 2:
            data, labels = (_np.array(part) if isinstance(part, list) else part for part in eval_data)
            eval_data = self._iterator(data, labels, training=False)
        module = self._module(train_data, logger, work_load_list)
        train_data.reset()  # it may have been used before
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

    def _bound(self, iterator):
        """A module for prediction with the parameters as they are."""
        if self.arg_params is None:
            raise ValueError("there are no parameters yet: fit the model, or load them")
        module = self._module(iterator)
        labels = [desc for desc in iterator.provide_label or [] if desc[0] in module.label_names]
        module.bind(iterator.provide_data, labels or None, for_training=False)
        module.set_params(self.arg_params, self.aux_params or {}, allow_extra=self.allow_extra_params)
        return module

    def predict(self, X, num_batch=None, return_data=False, reset=True):
        """Outputs as NumPy arrays; with return_data also the data and labels they belong to."""
        iterator = self._iterator(X, None, training=False)
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
        """The value of a metric over an iterator with labels; the labels of an array are zeros, as in MXNet."""
        iterator = self._iterator(X, None, training=False)
        module = self._bound(iterator)
        return module.score(iterator, eval_metric, num_batch, batch_end_callback, reset=reset)[0][1]

    def save(self, prefix, epoch=None, remove_amp_cast=True):
        """A checkpoint of the model."""
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None:
            raise ValueError("the epoch of the checkpoint must be given")
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
