"""A Module trained with stochastic variance reduced gradients.

Every `update_freq` epochs the weights are noted, and the gradient g̃ of the whole data at these weights w̃ is computed. A
step then uses g(w) - g(w̃) + g̃ instead of the gradient g(w) of its batch: the same on average, with less noise.
"""

import logging as _logging
import time as _time

from ... import metric as _metric
from ..._symbind import MXNetTypeError, MXNetValueError
from ...initializer import Uniform
from ...model import BatchEndParam
from ...module import Module
from ...module.base_module import _as_list

__all__ = ["SVRGModule"]


class SVRGModule(Module):
    """Module with variance reduced gradients; `update_freq` is the number of epochs between two full gradients. Those
    are of this process: with distributed stores each worker has its own."""

    def __init__(
        self,
        symbol,
        data_names=("data",),
        label_names=("softmax_label",),
        logger=_logging,
        context=None,
        work_load_list=None,
        fixed_param_names=None,
        state_names=None,
        group2ctxs=None,
        compression_params=None,
        update_freq=None,
    ):
        if not isinstance(update_freq, int):
            raise MXNetTypeError(f"update_freq is a number of epochs, not {update_freq!r}")
        if update_freq <= 0:
            raise MXNetValueError(f"update_freq is at least 1, not {update_freq}")
        arguments = {
            "data_names": data_names,
            "label_names": label_names,
            "logger": logger,
            "context": context,
            "work_load_list": work_load_list,
            "fixed_param_names": fixed_param_names,
            "state_names": state_names,
            "group2ctxs": group2ctxs,
            "compression_params": compression_params,
        }
        super().__init__(symbol, **arguments)
        self.update_freq = update_freq
        self._mod_aux = Module(symbol, **arguments)  # at the weights that were noted
        self._full_grads = None  # as grad_arrays of the executor group: for each parameter one per device

    def bind(
        self,
        data_shapes,
        label_shapes=None,
        for_training=True,
        inputs_need_grad=False,
        force_rebind=False,
        shared_module=None,
        grad_req="write",
    ):
        """Binds the module and, for training, its copy at the noted weights."""
        super().bind(data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req)
        if for_training:
            self._mod_aux.bind(
                data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req
            )

    def reshape(self, data_shapes, label_shapes=None):
        """Other shapes for both."""
        super().reshape(data_shapes, label_shapes)
        self._mod_aux.reshape(data_shapes, label_shapes)

    def forward(self, data_batch, is_train=None):
        """Computes the outputs; in training those at the noted weights too."""
        super().forward(data_batch, is_train)
        training = self.for_training if is_train is None else is_train
        if training and self._full_grads is not None:
            self._mod_aux.forward(data_batch, is_train)

    def backward(self, out_grads=None):
        """Computes the gradients at both weights."""
        super().backward(out_grads)
        if self._full_grads is not None:
            self._mod_aux.backward(out_grads)

    def update(self):
        """Reduces the noise of the gradients, and takes a step."""
        self._update_svrg_gradients()
        super().update()

    def _update_svrg_gradients(self):
        if self._full_grads is None:
            return
        pairs = zip(self._exec_group.grad_arrays, self._mod_aux._exec_group.grad_arrays, self._full_grads)
        for here, noted, full in pairs:
            for grad, special, whole in zip(here, noted, full):
                if grad is not None:
                    grad[:] = self._svrg_grads_update_rule(grad, special, whole)

    @staticmethod
    def _svrg_grads_update_rule(g_curr_batch_curr_weight, g_curr_batch_special_weight, g_special_weight_all_batch):
        return g_curr_batch_curr_weight - g_curr_batch_special_weight + g_special_weight_all_batch

    def update_full_grads(self, train_data):
        """Notes the weights, and computes the mean gradient over all batches at them."""
        if not (self.binded and self.params_initialized):
            raise MXNetValueError("call bind and init_params before computing the gradients of the whole data")
        arg_params, aux_params = self.get_params()
        self._mod_aux.set_params(arg_params, aux_params)
        train_data.reset()
        total, batches = None, 0.0
        for batch in train_data:
            self._mod_aux.forward(batch, is_train=True)
            self._mod_aux.backward()
            size = batch.data[0].shape[0]
            batches += 1 - (batch.pad or 0) / size
            grads = self._mod_aux._exec_group.grad_arrays
            if total is None:
                total = [[None if grad is None else grad.copy() for grad in one] for one in grads]
                continue
            for sums, one in zip(total, grads):
                for sum_of, grad in zip(sums, one):
                    if grad is not None:
                        sum_of += grad
        train_data.reset()
        if total is None:
            raise MXNetValueError("the data has no batches")
        for sums in total:
            for sum_of in sums:
                if sum_of is not None:
                    sum_of /= batches
        self._full_grads = total

    def fit(
        self,
        train_data,
        eval_data=None,
        eval_metric="acc",
        epoch_end_callback=None,
        batch_end_callback=None,
        kvstore="local",
        optimizer="sgd",
        optimizer_params=(("learning_rate", 0.01),),
        eval_end_callback=None,
        eval_batch_end_callback=None,
        initializer=Uniform(0.01),  # noqa: B008
        arg_params=None,
        aux_params=None,
        allow_missing=False,
        force_rebind=False,
        force_init=False,
        begin_epoch=0,
        num_epoch=None,
        validation_metric=None,
        monitor=None,
        sparse_row_id_fn=None,
    ):
        """Trains, with a full gradient every `update_freq` epochs; the arguments are those of Module.fit."""
        if num_epoch is None:
            raise MXNetValueError("fit needs num_epoch, the number of epochs")
        self.bind(train_data.provide_data, train_data.provide_label, True, force_rebind=force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        self.init_params(initializer, arg_params, aux_params, allow_missing, force_init)
        self.init_optimizer(kvstore, optimizer, optimizer_params)
        eval_metric = _metric.create(eval_metric)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        for epoch in range(begin_epoch, num_epoch):
            self._fit_epoch(train_data, epoch, eval_metric, batch_end_callback, monitor)
            arg_params, aux_params = self.get_params()
            self.set_params(arg_params, aux_params)
            for callback in _as_list(epoch_end_callback) if epoch_end_callback is not None else []:
                callback(epoch, self.symbol, arg_params, aux_params)
            if eval_data is not None:
                values = self.score(
                    eval_data,
                    validation_metric,
                    score_end_callback=eval_end_callback,
                    batch_end_callback=eval_batch_end_callback,
                    epoch=epoch,
                )
                for name, value in values:
                    self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, value)

    def _fit_epoch(self, train_data, epoch, eval_metric, batch_end_callback, monitor):
        start = _time.time()
        eval_metric.reset()
        if epoch % self.update_freq == 0:
            self.update_full_grads(train_data)
        train_data.reset()
        for nbatch, data_batch in enumerate(train_data):
            if monitor is not None:
                monitor.tic()
            self.forward(data_batch, is_train=True)
            self.backward()
            self.update()
            self.update_metric(eval_metric, data_batch.label)
            if monitor is not None:
                monitor.toc_print()
            for callback in _as_list(batch_end_callback) if batch_end_callback is not None else []:
                callback(BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=eval_metric, locals=locals()))
        for name, value in eval_metric.get_name_value():
            self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, value)
        self.logger.info("Epoch[%d] Time cost=%.3f", epoch, _time.time() - start)
        train_data.reset()

    def prepare(self, data_batch, sparse_row_id_fn=None):
        """Nothing is to be fetched: arrays are dense here."""
        super().prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
        self._mod_aux.prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
