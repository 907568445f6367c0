"""Optimizers: how parameters change.

A custom optimizer is a subclass of Optimizer with ``update(self, index, weight, grad, state)`` and, if it remembers
anything, ``create_state(self, index, weight)``; ``@mx.optimizer.register`` makes it known by name.
"""

import inspect as _inspect
import sys as _sys
from functools import partial as _partial

from . import _symbind
from ._symbind import MXNetTypeError, Updater, clip_global_norm

__all__ = [
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Adamax",
    "DCASGD",
    "FTML",
    "Ftrl",
    "GroupAdaGrad",
    "LAMB",
    "LARS",
    "LBSGD",
    "NAG",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "SGD",
    "SGLD",
    "Signum",
    "SignSGD",
    "Test",
    "Updater",
    "ccSGD",
    "clip_global_norm",
    "create",
    "get_updater",
    "register",
]

_native = _symbind.Optimizer


class _Linked(dict):
    """A dict whose changes reach the C++ object it was read from."""

    def __init__(self, values, write):
        super().__init__(values)
        self._write = write

    def _changing(name):
        method = getattr(dict, name)

        def change(self, *args, **kwargs):
            result = method(self, *args, **kwargs)
            self._write(dict(self))
            return result

        change.__name__ = name
        return change

    for _name in ("__setitem__", "__delitem__", "__ior__", "update", "pop", "popitem", "clear", "setdefault"):
        locals()[_name] = _changing(_name)
    del _name, _changing

    def __reduce__(self):
        return dict, (dict(self),)


def _rebuild(cls):
    return cls.__new__(cls)


_COMMON = ("rescale_grad", "wd", "clip_gradient", "clip_global_norm", "multi_precision", "begin_num_update")


def _defaults(rule):
    """The arguments of an optimizer with a C++ update rule, or with none, as they are where nothing is given."""
    prototype = Optimizer.__new__(Optimizer)
    prototype._set(rule, {}, rule)
    defaults = {name: getattr(prototype, name) for name in _COMMON}
    defaults["learning_rate"] = prototype.lr
    for name in prototype._argument_names():
        defaults[name] = prototype._get_argument(name)
    return defaults


def _initializer(names, defaults, takes_more):
    """An __init__ with the arguments `names`, in this order; with `takes_more`, it takes others by name as well."""
    kind = _inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [_inspect.Parameter("self", kind)]
    parameters += [_inspect.Parameter(name, kind, default=defaults[name]) for name in names]
    if takes_more:
        parameters.append(_inspect.Parameter("kwargs", _inspect.Parameter.VAR_KEYWORD))
    signature = _inspect.Signature(parameters)

    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        del arguments["self"]
        self._start(**arguments.pop("kwargs", {}), **arguments)

    __init__.__signature__ = signature
    return __init__


class Optimizer(_native):
    """Base of all optimizers.

    Parameters
    ----------
    rescale_grad : float
        Gradients are multiplied by it first; 1 / batch size, usually.
    param_idx2name : dict
        Names of numbered parameters, by which multipliers are found.
    wd : float
        Weight decay. Parameters that are named, but neither ..._weight nor ..._gamma, do not decay.
    clip_gradient : float
        Rescaled gradients are kept between -clip_gradient and clip_gradient.
    learning_rate : float
        The learning rate; 0.01 unless the schedule has one.
    lr_scheduler : LRScheduler or callable
        The learning rate as a function of the number of updates.
    sym : Symbol
        The network, whose attributes lr_mult and wd_mult count.
    begin_num_update : int
        The count of updates to begin from.
    multi_precision : bool
        Keep a float32 copy of 16-bit weights.
    param_dict : dict
        Objects with lr_mult and wd_mult, by number of the parameter.
    clip_global_norm : float
        Bounds the norm of all rescaled gradients that are updated together: those of a step of Module, of a push, of
        one call of an Updater.
    """

    opt_registry = {}  # classes by name in lower case
    sym = None
    _rule = ""  # the C++ update rule that does the arithmetic

    def __new__(cls, *args, **kwargs):
        # The C++ part is there from the start, so that unpickling has something to fill.
        self = super().__new__(cls)
        _native.__init__(self)
        self._set("", {}, cls.__name__.lower())
        return self

    def _start(self, param_idx2name=None, sym=None, param_dict=None, **arguments):
        cls = type(self)
        self._set(self._rule, arguments, "" if "_rule" in cls.__dict__ else cls.__name__.lower())
        if param_idx2name is not None and not isinstance(param_idx2name, dict):
            raise MXNetTypeError(f"param_idx2name is a dict of names by number, not {param_idx2name!r}")
        self._set_names(param_idx2name or {}, {} if sym is None else sym.attr_dict())
        if sym is not None:
            self.sym = sym
        if param_dict:
            self.param_dict = param_dict
            self.set_lr_mult({index: parameter.lr_mult for index, parameter in param_dict.items()})
            self.set_wd_mult({index: parameter.wd_mult for index, parameter in param_dict.items()})
        else:
            for name in ("set_lr_mult", "set_wd_mult"):  # as MXNet does, for a class that overrides them
                if getattr(cls, name) is not getattr(_native, name):
                    getattr(self, name)({})

    @staticmethod
    def register(klass):
        """Class decorator: makes the optimizer known by its name, in any case, here and in C++."""
        if not (isinstance(klass, type) and issubclass(klass, _native)):
            raise MXNetTypeError(f"register takes a subclass of Optimizer, not {klass!r}")
        name = klass.__name__.lower()
        _symbind._register_optimizer(name, klass)
        Optimizer.opt_registry[name] = klass
        return klass

    @staticmethod
    def create_optimizer(name, **kwargs):
        """An optimizer by name, in any case."""
        if not isinstance(name, str):
            raise MXNetTypeError(f"expected the name of an optimizer, not {name!r}")
        klass = Optimizer.opt_registry.get(name.lower())
        return _symbind._create_optimizer(name, kwargs) if klass is None else klass(**kwargs)

    @property
    def lr(self):
        """The learning rate where no schedule decides.

        A class with a `_get_lr` of its own may keep any object here, from which it computes the rate.
        """
        return self.__dict__["lr"] if "lr" in self.__dict__ else _native.lr.__get__(self)

    @lr.setter
    def lr(self, value):
        try:
            _native.lr.__set__(self, value)
            self.__dict__.pop("lr", None)
        except TypeError:
            if type(self)._get_lr is _native._get_lr and type(self)._get_lrs is _native._get_lrs:
                raise
            self.__dict__["lr"] = value

    @property
    def lr_mult(self):
        """Multipliers of the learning rate, by name or number."""
        return _Linked(self._multipliers("__lr_mult__", {}, self._get_lr_mult()), _partial(_native.set_lr_mult, self))

    @lr_mult.setter
    def lr_mult(self, values):
        _native.set_lr_mult(self, self._for_all(values))

    @property
    def wd_mult(self):
        """Multipliers of the weight decay, by name or number."""
        still = {name: 0.0 for name in self.idx2name.values() if not self._decays(name)}
        values = self._multipliers("__wd_mult__", still, self._get_wd_mult())
        return _Linked(values, _partial(_native.set_wd_mult, self))

    @wd_mult.setter
    def wd_mult(self, values):
        _native.set_wd_mult(self, self._for_all(values))

    def _for_all(self, values):
        """Multipliers that are assigned are all there are: no attribute and no default counts beside them."""
        return {**dict.fromkeys(self.idx2name.values(), 1.0), **values}

    def _multipliers(self, attribute, first, last):
        values = dict(first)
        for name, attributes in self._get_attributes().items():
            if attributes.get(attribute, "None") != "None":
                values[name] = float(attributes[attribute])
        values.update(last)
        return values

    @property
    def _index_update_count(self):
        return _Linked(self._get_counts(), self._set_counts)

    @_index_update_count.setter
    def _index_update_count(self, counts):
        self._set_counts(counts)

    def set_lr_scale(self, args_lrscale):
        """Fails: the older name of set_lr_mult."""
        raise DeprecationWarning("set_lr_scale was removed: use set_lr_mult")

    @property
    def sym_info(self):
        """(attributes, arguments) of the network that was given, or ()."""
        return () if self.sym is None else (self.sym.attr_dict(), self.sym.list_arguments())

    def __reduce__(self):
        arguments = {name: self._get_argument(name) for name in self._argument_names()}
        for name in _COMMON:
            arguments[name] = getattr(self, name)
        names = self.idx2name, self._get_attributes(), self._get_lr_mult(), self._get_wd_mult()
        own = dict(getattr(self, "__dict__", {}))
        state = arguments, self.lr, self.lr_scheduler, names, self._get_progress(), own
        return _rebuild, (type(self),), state

    def __setstate__(self, state):
        arguments, lr, schedule, (idx2name, attributes, lr_mult, wd_mult), progress, own = state
        self._start(**arguments)
        self.lr = lr
        self.lr_scheduler = schedule
        self._set_names(idx2name, attributes)
        _native.set_lr_mult(self, lr_mult)
        _native.set_wd_mult(self, wd_mult)
        self._set_progress(*progress)
        self.__dict__.update(own)


_NAMES = (
    "rescale_grad",
    "param_idx2name",
    "wd",
    "clip_gradient",
    "learning_rate",
    "lr_scheduler",
    "sym",
    "begin_num_update",
    "multi_precision",
    "param_dict",
    "clip_global_norm",
)
Optimizer.__init__ = _initializer(
    _NAMES, {**dict.fromkeys(_NAMES), **_defaults(""), "learning_rate": None}, takes_more=False
)


def _argument(name):
    return property(
        lambda self: self._get_argument(name),
        lambda self, value: self._set_argument(name, value),
        doc=f"The current value of the argument {name}.",
    )


def _built_in(rule, *names):
    """Makes a class the optimizer of a C++ update rule: with its arguments as attributes, and known by name.

    `names` are the arguments that may be given by position, in MXNet's order. Their defaults are those of C++.
    """

    def complete(klass):
        defaults = _defaults(rule)
        klass._rule = rule
        klass.__init__ = _initializer(names, defaults, takes_more=True)
        for name in defaults:
            if not hasattr(klass, name):
                setattr(klass, name, _argument(name))
        Optimizer.opt_registry[klass.__name__.lower()] = klass
        return klass

    return complete


@_built_in("sgd", "momentum", "lazy_update")
class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked; `lazy_update` is without effect on dense arrays."""


@_built_in("sgd", "momentum", "lazy_update")
class ccSGD(SGD):
    """Another name of SGD."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


@_built_in("nag", "momentum")
class NAG(Optimizer):
    """Gradient descent with Nesterov's momentum."""


@_built_in("sgld")
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: half a step of gradient descent, and noise."""


@_built_in("dcasgd", "momentum", "lamda")
class DCASGD(Optimizer):
    """Gradient descent that makes up for the delay of asynchronous gradients."""


@_built_in("signum", "learning_rate", "momentum", "wd_lh")
class Signum(Optimizer):
    """Steps along the sign of the running mean of the gradient."""


@_built_in("signsgd", "learning_rate")
class SignSGD(Signum):
    """Steps along the sign of the gradient."""


@_built_in("adam", "learning_rate", "beta1", "beta2", "epsilon", "lazy_update")
class Adam(Optimizer):
    """Running means of the gradient and of its square, both corrected for their start."""


@_built_in("adamw", "learning_rate", "beta1", "beta2", "epsilon", "correct_bias")
class AdamW(Optimizer):
    """Adam whose weight decay is no part of the gradient: the weight itself shrinks by learning_rate * wd."""


@_built_in("adamax", "learning_rate", "beta1", "beta2")
class Adamax(Optimizer):
    """Adam with the largest gradient instead of the mean square."""


@_built_in("nadam", "learning_rate", "beta1", "beta2", "epsilon", "schedule_decay")
class Nadam(Optimizer):
    """Adam with Nesterov's momentum."""


@_built_in("adagrad", "eps")
class AdaGrad(Optimizer):
    """Steps divided by the root of all squares so far."""

    float_stable_eps = _argument("eps")


@_built_in("groupadagrad", "eps")
class GroupAdaGrad(Optimizer):
    """AdaGrad with one sum of squares for each row of a matrix."""

    float_stable_eps = _argument("eps")


@_built_in("rmsprop", "learning_rate", "gamma1", "gamma2", "epsilon", "centered", "clip_weights")
class RMSProp(Optimizer):
    """Steps divided by the root of the running mean square; `centered`: by the deviation, and with momentum."""


@_built_in("adadelta", "rho", "epsilon")
class AdaDelta(Optimizer):
    """Steps in the unit of the weight; the learning rate plays no part."""


@_built_in("ftrl", "lamda1", "learning_rate", "beta")
class Ftrl(Optimizer):
    """Follows the regularized leader: weights that matter little stay zero."""


@_built_in("ftml", "beta1", "beta2", "epsilon")
class FTML(Optimizer):
    """Follows the moving leader."""


@_built_in("lars", "momentum", "lazy_update", "eta", "eps", "momentum_correction")
class LARS(Optimizer):
    """Gradient descent whose rate for each weight follows how large the weight is against its gradient."""


@_built_in("lamb", "learning_rate", "beta1", "beta2", "epsilon", "lower_bound", "upper_bound", "bias_correction")
class LAMB(Optimizer):
    """Adam's direction, with a step in proportion to the norm of the weight."""


@_built_in(
    "lbsgd",
    "momentum",
    "multi_precision",
    "warmup_strategy",
    "warmup_epochs",
    "batch_scale",
    "updates_per_epoch",
    "begin_epoch",
    "num_epochs",
)
class LBSGD(Optimizer):
    """Gradient descent for large batches, whose rate grows during the first epochs."""


@_built_in("test")
class Test(Optimizer):
    """Adds the gradient to the weight, and stores the weight as its state: for tests."""

    __test__ = False  # no test case


Updater.states = property(
    lambda self: _Linked(self._get_states_dict(), self._set_states_dict),
    lambda self, states: self._set_states_dict(states),
    doc="The states by key.",
)

register = Optimizer.register
create = Optimizer.create_optimizer


def get_updater(optimizer):
    """A function (index, grad, weight) that updates with the optimizer and stores the states."""
    return Updater(optimizer)


_FROM_NDARRAY = ("NDArray", "array", "clip", "maximum", "sign", "sqrt", "square", "zeros")


def __getattr__(name):
    # Scripts take these from here, since MXNet's module imports them.
    if name in _FROM_NDARRAY or name.endswith("_update"):
        from . import ndarray

        return getattr(ndarray, name)
    if name in ("NDabs", "NDnorm"):  # MXNet's names for two of them
        from . import ndarray

        return getattr(ndarray, name[2:])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


optimizer = contrib = _sys.modules[__name__]  # mxnet.optimizer.optimizer, mxnet.optimizer.contrib
_sys.modules[__name__ + ".optimizer"] = _sys.modules[__name__ + ".contrib"] = optimizer
