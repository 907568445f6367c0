"""Metrics: how good predictions are."""

import json as _json

from ._symbind import (
    F1,
    MAE,
    MCC,
    MSE,
    PCC,
    RMSE,
    Accuracy,
    Caffe,
    CompositeEvalMetric,
    CrossEntropy,
    CustomMetric,
    EvalMetric,
    Loss,
    MXNetTypeError,
    MXNetValueError,
    NegativeLogLikelihood,
    PearsonCorrelation,
    Perplexity,
    TopKAccuracy,
    Torch,
)

__all__ = [
    "Accuracy",
    "Caffe",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "F1",
    "Loss",
    "MAE",
    "MCC",
    "MSE",
    "NegativeLogLikelihood",
    "PCC",
    "PearsonCorrelation",
    "Perplexity",
    "RMSE",
    "TopKAccuracy",
    "Torch",
    "alias",
    "check_label_shapes",
    "create",
    "np",
    "register",
]

_registry = {}


class _Parts(list):
    """The metrics of a CompositeEvalMetric; what is appended becomes one of them."""

    def __init__(self, metrics, owner):
        super().__init__(metrics)
        self._owner = owner

    def append(self, metric):
        self._owner.add(metric)
        super().append(self._owner.get_metric(len(self)))

    def extend(self, metrics):
        for metric in metrics:
            self.append(metric)

    def _refuse(self, *arguments, **options):
        raise MXNetTypeError("metrics can be added to a CompositeEvalMetric, but not removed, replaced or moved")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    clear = insert = pop = remove = reverse = sort = _refuse


def register(klass, name=None):
    """Makes a class known to `create`, under its own name or `name`, in any case."""
    if not (isinstance(klass, type) and issubclass(klass, EvalMetric)):
        raise MXNetTypeError(f"expected a subclass of EvalMetric, not {klass!r}")
    _registry[(name or klass.__name__).lower()] = klass
    return klass


def alias(*aliases):
    """Makes a class known to `create` under further names."""

    def register_all(klass):
        for name in aliases:
            register(klass, name)
        return klass

    return register_all


for _class, _names in {
    Accuracy: ("acc",),
    Caffe: (),
    CompositeEvalMetric: ("composite",),
    CrossEntropy: ("ce", "cross-entropy"),
    CustomMetric: (),
    F1: (),
    Loss: (),
    MAE: (),
    MCC: (),
    MSE: (),
    NegativeLogLikelihood: ("nll_loss",),
    PCC: (),
    PearsonCorrelation: ("pearsonr",),
    Perplexity: (),
    RMSE: (),
    TopKAccuracy: ("top_k_accuracy", "top_k_acc"),
    Torch: (),
}.items():
    register(alias(*_names)(_class))


def _from_config(config):
    """The result of get_config, or [name, arguments]: a dict, a list, or either as JSON."""
    config = _json.loads(config) if isinstance(config, str) else config
    if isinstance(config, list):
        name, arguments = config
        return create(name, **arguments)
    arguments = dict(config)
    name = arguments.pop("metric")
    if "top_k" in arguments and "name" in arguments:  # which gets the number at its end when it is made
        arguments["name"] = arguments["name"].removesuffix(f"_{arguments['top_k']}")
    if "metrics" in arguments:
        arguments["metrics"] = [create(part) for part in arguments["metrics"]]
    return create(name, **arguments)


def create(metric, *args, **kwargs):
    """A metric from a name, a function feval(label, pred), a metric, a list of these, or the result of
    get_config as a dict or in JSON."""
    if isinstance(metric, EvalMetric):
        return metric
    if isinstance(metric, dict) or (isinstance(metric, str) and metric.startswith(("{", "["))):
        if args or kwargs:
            raise MXNetValueError("a metric given by its configuration takes no further arguments")
        return _from_config(metric)
    if isinstance(metric, type) and issubclass(metric, EvalMetric):
        return metric(*args, **kwargs)
    if isinstance(metric, list | tuple):
        return CompositeEvalMetric([create(one, *args, **kwargs) for one in metric])
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if not isinstance(metric, str):
        raise MXNetTypeError(f"a metric is given by its name, a function, a metric or a list of these, not {metric!r}")
    if metric.lower() not in _registry:
        raise MXNetValueError(f"unknown metric {metric!r}; there are {', '.join(sorted(_registry))}")
    return _registry[metric.lower()](*args, **kwargs)


def np(numpy_feval, name=None, allow_extra_outputs=False):
    """A metric from a function of NumPy arrays: feval(label, pred) returns a number, or (sum, instances)."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)


def check_label_shapes(labels, preds, wrap=False, shape=False):
    """Fails where there are not as many labels as predictions (`shape`: where their shapes differ).

    Returns both, with `wrap` as lists.
    """
    label_size, pred_size = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if label_size != pred_size:
        raise MXNetValueError(f"Shape of labels {label_size} does not match shape of predictions {pred_size}")
    if wrap:
        labels = labels if isinstance(labels, list | tuple) else [labels]
        preds = preds if isinstance(preds, list | tuple) else [preds]
    return labels, preds


def _restore(klass, native, attributes, state):
    """What copies and pickles are made by; `native` is the class in C++ whose part is to be made."""
    metric = klass.__new__(klass)
    if native is None:
        metric.__dict__.update(attributes)
        return metric
    native.__init__(metric, **attributes["_kwargs"])
    for name, value in attributes.items():
        setattr(metric, name, value)
    metric._set_state(state)
    return metric
