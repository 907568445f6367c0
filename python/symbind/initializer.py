"""Initializers: the first values of parameters.

A custom initializer is a subclass of Initializer with ``_init_weight(self, desc, arr)``; ``@mx.init.register`` makes it
known by name, also to the ``init`` of a variable.
"""

import json as _json
import math as _math
import numbers as _numbers

from . import _symbind
from .log import logger_of as _logger_of

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]

_native = _symbind.Initializer
_registry = {}  # classes by name in lower case


class InitDesc(str):
    """The name of a parameter, with its variable's attributes and the initializer that was asked first."""

    def __new__(cls, name, attrs=None, global_init=None):
        self = super().__new__(cls, name)
        self.attrs = attrs or {}
        self.global_init = global_init
        return self


def _root_mean_square(array):
    return str(float((array.norm() / _math.sqrt(array.size)).asscalar()))


def _rebuild(cls):
    return cls.__new__(cls)


class Initializer(_native):
    """Base of all initializers: fills an array by the end of its parameter's name.

    Called with an InitDesc, a variable's own initializer counts first; a plain text is treated as old programs do it.
    Keyword arguments are what `dumps` writes, and must be plain data.
    """

    _kind = ""  # the C++ initializer that fills weights

    def __new__(cls, *args, **kwargs):
        # The C++ part is there from the start, so that unpickling has something to fill.
        self = super().__new__(cls)
        _native.__init__(self)
        self._kwargs = {}
        self._verbose = False
        self._print_func = None
        return self

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        self._refresh()

    def _rule_arguments(self):
        return self._kwargs

    def _refresh(self):
        if self._kind:
            try:
                self._set_rule(self._kind, self._rule_arguments())
            except TypeError as error:
                raise _symbind.MXNetTypeError(f"{self!r}: {error}") from error

    def set_verbosity(self, verbose=False, print_func=None):
        """Logs each array that is filled, with print_func(array): the root of its mean square by default."""
        self._verbose = verbose
        self._print_func = print_func or _root_mean_square
        return self

    def _verbose_print(self, desc, init, arr):
        if self._verbose and self._print_func:
            what = init or getattr(desc, "attrs", {}).get("__init__") or str(desc).rpartition("_")[2]
            _logger_of(None).info("Initialized %s as %s: %s", desc, what, self._print_func(arr))

    def dumps(self):
        """The text that an __init__ attribute holds: '["uniform", {"scale": 0.07}]'."""
        return _json.dumps([type(self).__name__.lower(), self._kwargs])

    def _init_zero(self, _, arr):
        arr[:] = 0

    def _init_one(self, _, arr):
        arr[:] = 1

    def _init_loc_bias(self, _, arr):
        """The bias of a layer that predicts affine maps: the identity."""
        if arr.shape != (6,):
            raise _symbind.MXNetValueError(
                f"an affine map of the plane has 6 numbers, and the array's shape is {arr.shape}"
            )
        arr[:] = [1.0, 0, 0, 0, 1.0, 0]

    def _init_bilinear(self, desc, arr):
        Bilinear()._init_weight(desc, arr)

    def _legacy_init(self, name, arr):
        _native.__call__(self, str(name), arr)

    def __eq__(self, other):
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    def __hash__(self):
        return hash(type(self))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._kwargs.items())})"

    def __reduce__(self):
        return _rebuild, (type(self),), dict(self.__dict__)

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._refresh()


def register(klass):
    """Class decorator: makes the initializer known by its name, in any case, here and in C++."""
    if not (isinstance(klass, type) and issubclass(klass, _native)):
        raise _symbind.MXNetTypeError(f"register takes a subclass of Initializer, not {klass!r}")
    name = klass.__name__.lower()
    _symbind._register_initializer(name, klass)
    _registry[name] = klass
    return klass


def alias(*aliases):
    """Class decorator: makes the initializer known under further names, here and in C++."""

    def decorate(klass):
        register(klass)
        for name in aliases:
            _symbind._register_initializer(name.lower(), klass)
            _registry[name.lower()] = klass
        return klass

    return decorate


def create(initializer, *args, **kwargs):
    """An initializer by name, or from the text of dumps(); one that is an object already stays."""
    if not isinstance(initializer, str):
        if not callable(initializer):
            raise _symbind.MXNetTypeError(f"expected an initializer or the name of one, not {initializer!r}")
        return initializer
    if initializer.startswith("["):
        initializer, kwargs = _json.loads(initializer)
    klass = _registry.get(initializer.lower())
    if klass is None:
        known = ", ".join(sorted(_registry))
        raise _symbind.MXNetValueError(f"unknown initializer '{initializer}'; there are {known}")
    return klass(*args, **kwargs)


def _argument(name):
    def change(self, value):
        self._kwargs[name] = value
        self._refresh()

    return property(lambda self: self._kwargs[name], change, doc=f"The argument {name}.")


def _built_in(*names):
    def known(klass):
        for name in names:
            _registry[name] = klass
        return klass

    return known


@_built_in("zero", "zeros")
class Zero(Initializer):
    """Zeros."""

    _kind = "zero"

    def __init__(self):
        super().__init__()


@_built_in("one", "ones")
class One(Initializer):
    """Ones."""

    _kind = "one"

    def __init__(self):
        super().__init__()


@_built_in("constant")
class Constant(Initializer):
    """One value everywhere, or the values of an array."""

    value = _argument("value")

    def __init__(self, value):
        super().__init__(value=value)

    def _init_weight(self, _, arr):
        arr[:] = self.value

    def dumps(self):
        value = self.value
        if not isinstance(value, _numbers.Number | list | tuple):
            value = value.asnumpy().tolist() if hasattr(value, "asnumpy") else value.tolist()
        return _json.dumps(["constant", {"value": value}])


@_built_in("uniform")
class Uniform(Initializer):
    """Uniform between -scale and scale."""

    _kind = "uniform"
    scale = _argument("scale")

    def __init__(self, scale=0.07):
        super().__init__(scale=scale)


@_built_in("normal")
class Normal(Initializer):
    """Normal with deviation sigma."""

    _kind = "normal"
    sigma = _argument("sigma")

    def __init__(self, sigma=0.01):
        super().__init__(sigma=sigma)


@_built_in("orthogonal")
class Orthogonal(Initializer):
    """Orthonormal rows times scale, or columns where these are fewer."""

    _kind = "orthogonal"
    scale = _argument("scale")
    rand_type = _argument("rand_type")

    def __init__(self, scale=1.414, rand_type="uniform"):
        super().__init__(scale=scale, rand_type=rand_type)


@_built_in("xavier")
class Xavier(Initializer):
    """Keeps the scale of activations and gradients alike in all layers.

    Parameters
    ----------
    rnd_type : str
        "uniform" or "gaussian".
    factor_type : str
        What counts: the inputs ("in"), the outputs ("out"), or their mean ("avg").
    magnitude : float
        The scale is the root of magnitude over that number.
    """

    _kind = "xavier"
    rnd_type = _argument("rnd_type")
    factor_type = _argument("factor_type")
    magnitude = _argument("magnitude")

    def __init__(self, rnd_type="uniform", factor_type="avg", magnitude=3):
        Initializer.__init__(self, rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)


@_built_in("msraprelu")
class MSRAPrelu(Xavier):
    """Xavier's normal one, for layers followed by a leaky rectifier of that slope."""

    _kind = "msraprelu"
    rnd_type = "gaussian"
    slope = _argument("slope")

    def __init__(self, factor_type="avg", slope=0.25):
        Initializer.__init__(self, factor_type=factor_type, slope=slope)

    @property
    def magnitude(self):
        """2 / (1 + slope²)"""
        return 2.0 / (1 + self.slope**2)


@_built_in("bilinear")
class Bilinear(Initializer):
    """For a deconvolution that enlarges images."""

    _kind = "bilinear"

    def __init__(self):
        super().__init__()


@_built_in("lstmbias")
class LSTMBias(Initializer):
    """The bias of an LSTM: zero, but for its forget gate."""

    _kind = "lstmbias"
    forget_bias = _argument("forget_bias")

    def __init__(self, forget_bias=1.0):
        super().__init__(forget_bias=forget_bias)


@_built_in("fusedrnn")
class FusedRNN(Initializer):
    """The one vector that holds all parameters of a fused recurrent layer.

    Parameters
    ----------
    init : Initializer or str
        For the matrices and biases inside; None: the one that initializes everything else.
    """

    _kind = "fusedrnn"

    def __init__(self, init, num_hidden, num_layers, mode, bidirectional=False, forget_bias=1.0):
        self._init = create(init) if isinstance(init, str) else init
        super().__init__(
            init=None if self._init is None else self._init.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )

    def _rule_arguments(self):
        return {**self._kwargs, "init": self._init}


class Load(Initializer):
    """Values from a file or a dict by name; other names are initialized by `default_init`. A subclass may change these
    attributes; the names in the dict `param` have no "arg:" or "aux:" in front."""

    param = _argument("param")
    default_init = _argument("default_init")
    verbose = _argument("verbose")

    def __init__(self, param, default_init=None, verbose=False):
        from .ndarray import load

        param = load(param) if isinstance(param, str) else param
        if not isinstance(param, dict):
            raise _symbind.MXNetTypeError(f"Load takes a file or a dict of arrays, not {param!r}")
        by_name = {name[4:] if name.startswith(("arg:", "aux:")) else name: array for name, array in param.items()}
        super().__init__(param=by_name, default_init=default_init, verbose=verbose)

    def __call__(self, name, arr):
        found = {name: self.param[name]} if name in self.param else {}  # `param` may have changed since the last call
        self._set_rule("load", {**self._kwargs, "param": found})
        super().__call__(name, arr)

    def _init_weight(self, name, arr):
        self(name, arr)

    def dumps(self):
        raise _symbind.MXNetValueError("Load holds arrays: there is no text for it")


class Mixed(Initializer):
    """The initializer of the first regular expression that matches the beginning of the name."""

    _kind = "mixed"

    def __init__(self, patterns, initializers):
        super().__init__(patterns=list(patterns), initializers=list(initializers))

    def dumps(self):
        raise _symbind.MXNetValueError("there is no text for several initializers")
