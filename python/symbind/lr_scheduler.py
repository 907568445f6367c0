"""Learning rates as functions of the number of updates, each with a warm-up.

A custom schedule is a subclass of LRScheduler with ``__call__(self, num_update)``; any function of the number of
updates does as well.
"""

from math import pi  # noqa: F401 (scripts take it from here, since MXNet's module imports it)

from . import _symbind

__all__ = ["LRScheduler", "FactorScheduler", "MultiFactorScheduler", "PolyScheduler", "CosineScheduler"]


_native = _symbind.LRScheduler


def _rebuild(cls):
    return cls.__new__(cls)


class LRScheduler(_native):
    """Base of all schedules: during ``warmup_steps`` updates the rate rises to ``base_lr``.

    Parameters
    ----------
    base_lr : float
        The rate to start from.
    warmup_steps : int
        Number of updates of the warm-up.
    warmup_begin_lr : float
        Where the warm-up begins.
    warmup_mode : str
        "linear", or "constant": the rate stays at warmup_begin_lr until the warm-up ends.
    """

    _arguments = ("warmup_final_lr", "warmup_steps", "warmup_begin_lr", "warmup_mode")  # in the order of _initialise
    _initialise = _native._set

    def __new__(cls, *args, **kwargs):
        # The C++ part is there from the start: a subclass need not call our __init__.
        self = super().__new__(cls)
        _native.__init__(self)
        return self

    def __init__(self, base_lr=0.01, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"):
        self._initialise(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def __reduce__(self):
        arguments = [getattr(self, name) for name in self._arguments]
        return _rebuild, (type(self),), (arguments, self._state(), dict(self.__dict__))

    def __setstate__(self, state):
        arguments, progress, own = state
        self._initialise(*arguments)
        self._restore(progress)
        self.__dict__.update(own)


class FactorScheduler(LRScheduler):
    """The rate is multiplied by ``factor`` every ``step`` updates, until it is ``stop_factor_lr``."""

    _initialise = _native._set_factor
    step = _native._factor_step
    factor = _native._factor_factor
    stop_factor_lr = _native._factor_stop_factor_lr
    count = _native._factor_count
    _arguments = ("step", "factor", "stop_factor_lr", *LRScheduler._arguments)

    def __init__(
        self,
        step,
        factor=1,
        stop_factor_lr=1e-8,
        base_lr=0.01,
        warmup_steps=0,
        warmup_begin_lr=0,
        warmup_mode="linear",
    ):
        self._initialise(step, factor, stop_factor_lr, base_lr, warmup_steps, warmup_begin_lr, warmup_mode)


class MultiFactorScheduler(LRScheduler):
    """The rate is multiplied by ``factor`` at each of the updates listed in ``step``."""

    _initialise = _native._set_multi
    step = _native._multi_step
    factor = _native._multi_factor
    cur_step_ind = _native._multi_cur_step_ind
    count = _native._multi_count
    _arguments = ("step", "factor", *LRScheduler._arguments)

    def __init__(self, step, factor=1, base_lr=0.01, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"):
        self._initialise(list(step), factor, base_lr, warmup_steps, warmup_begin_lr, warmup_mode)


class PolyScheduler(LRScheduler):
    """From ``base_lr`` to ``final_lr`` in ``max_update`` updates, by a polynomial of power ``pwr``."""

    _initialise = _native._set_poly
    max_update = _native._poly_max_update
    base_lr_orig = _native._poly_base_lr
    power = _native._poly_power
    final_lr = _native._poly_final_lr
    max_steps = property(lambda self: self.max_update - self.warmup_steps)
    _arguments = ("max_update", "base_lr_orig", "power", "final_lr", *LRScheduler._arguments[1:])

    def __init__(
        self, max_update, base_lr=0.01, pwr=2, final_lr=0, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"
    ):
        self._initialise(max_update, base_lr, pwr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)


class CosineScheduler(LRScheduler):
    """From ``base_lr`` to ``final_lr`` in ``max_update`` updates, along half a cosine wave."""

    _initialise = _native._set_cosine
    max_update = _native._cosine_max_update
    base_lr_orig = _native._cosine_base_lr
    final_lr = _native._cosine_final_lr
    max_steps = property(lambda self: self.max_update - self.warmup_steps)
    _arguments = ("max_update", "base_lr_orig", "final_lr", *LRScheduler._arguments[1:])

    def __init__(self, max_update, base_lr=0.01, final_lr=0, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"):
        self._initialise(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
