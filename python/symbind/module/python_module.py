"""Modules whose computation is written in Python, to be put between others in a SequentialModule."""

import logging as _logging

from .._symbind import MXNetTypeError, MXNetValueError
from ..io import DataDesc
from ..log import logger_of as _logger_of
from ..ndarray import NDArray, array
from .base_module import BaseModule

__all__ = ["PythonLossModule", "PythonModule"]


class PythonModule(BaseModule):
    """A module without parameters, to derive from: a class defines forward, backward, get_outputs, get_input_grads and
    _compute_output_shapes."""

    def __init__(self, data_names, label_names, output_names, logger=_logging):
        super().__init__(logger=logger)
        self._data_names = _names(data_names)
        self._label_names = _names(label_names)
        self._output_names = _names(output_names)
        self._data_shapes = self._label_shapes = self._output_shapes = None

    @property
    def data_names(self):
        return self._data_names

    @property
    def label_names(self):
        return self._label_names

    @property
    def output_names(self):
        return self._output_names

    @property
    def data_shapes(self):
        return self._data_shapes

    @property
    def label_shapes(self):
        """Descriptions of the labels, or None where the module takes none."""
        return self._label_shapes

    @property
    def output_shapes(self):
        """(name, shape) of each output."""
        return self._output_shapes

    def get_params(self):
        return {}, {}

    def init_params(
        self,
        initializer=None,
        arg_params=None,
        aux_params=None,
        allow_missing=False,
        force_init=False,
        allow_extra=False,
    ):
        self.params_initialized = True

    def set_params(self, arg_params, aux_params, allow_missing=False, force_init=True, allow_extra=False):
        self.params_initialized = True

    def init_optimizer(
        self, kvstore="local", optimizer="sgd", optimizer_params=(("learning_rate", 0.01),), force_init=False
    ):
        self.optimizer_initialized = True

    def update(self):
        """There are no parameters to update."""

    def update_metric(self, eval_metric, labels, pre_sliced=False):
        """Updates a metric with the outputs; nothing where no labels are bound."""
        if self._label_shapes is not None:
            eval_metric.update(labels, self.get_outputs())

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
        """Takes note of the shapes. The names must be those that the module was constructed with, in their order."""
        if self.binded and not force_rebind:
            _logger_of(self.logger).warning("Already bound, ignoring bind()")
            return
        if grad_req != "write":
            raise MXNetValueError(
                f"gradients of a PythonModule are written: grad_req must be 'write', not {grad_req!r}"
            )
        self._data_shapes = _described(data_shapes, self._data_names, "data")
        self._label_shapes = None
        if label_shapes is not None:
            self._label_shapes = _described(label_shapes, self._label_names, "label")
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self._output_shapes = self._compute_output_shapes()
        self.binded = True

    def _compute_output_shapes(self):
        """A list of (name, shape), from self._data_shapes and self._label_shapes."""
        raise NotImplementedError(f"{type(self).__name__} does not define _compute_output_shapes")


class PythonLossModule(PythonModule):
    """A loss: its output is its input, the scores, and grad_func(scores, labels) is the gradient of these. A class may
    define _backward_impl instead, which sets self._scores_grad."""

    def __init__(
        self, name="pyloss", data_names=("data",), label_names=("softmax_label",), logger=_logging, grad_func=None
    ):
        super().__init__(data_names, label_names, [name + "_output"], logger=logger)
        if len(self._data_names) != 1 or len(self._label_names) != 1:
            raise MXNetValueError(f"a loss has one input and one label, not {data_names} and {label_names}")
        if grad_func is not None and not callable(grad_func):
            raise MXNetTypeError(f"grad_func must be a function of scores and labels, not {grad_func!r}")
        self._name = name
        self._grad_func = grad_func
        self._scores = self._labels = self._scores_grad = None

    def _compute_output_shapes(self):
        return [(self._name + "_output", self._data_shapes[0][1])]

    def forward(self, data_batch, is_train=None):
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context=True):
        _require_merged(merge_multi_context)
        return [self._scores]

    def backward(self, out_grads=None):
        if out_grads:
            raise MXNetValueError("a loss takes no out_grads")
        if not self.for_training:
            raise MXNetValueError("the module was not bound for training")
        self._backward_impl()

    def _backward_impl(self):
        if self._grad_func is None:
            raise NotImplementedError("the gradient of a loss needs grad_func, or a class that defines _backward_impl")
        gradient = self._grad_func(self._scores, self._labels)
        self._scores_grad = gradient if isinstance(gradient, NDArray) else array(gradient, ctx=self._scores.context)

    def get_input_grads(self, merge_multi_context=True):
        _require_merged(merge_multi_context)
        return [self._scores_grad]

    def install_monitor(self, mon):
        """There is no network to look into."""


def _names(names):
    return [names] if isinstance(names, str) else list(names or ())


def _described(shapes, names, kind):
    """The shapes as they came; their names must be the module's."""
    descs = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in shapes]
    given = [desc.name for desc in descs]
    if given != names:
        raise MXNetValueError(f"{kind}_shapes describe {given}, but {kind}_names are {names}")
    return descs


def _require_merged(merge_multi_context):
    if not merge_multi_context:
        raise MXNetValueError("a PythonLossModule has no contexts: merge_multi_context must be True")
