"""Operators of MXNet's `contrib` namespace on arrays, as far as the registry has them."""

import math as _math

from .. import _functions
from . import _internal


def adamw_update(
    weight,
    grad,
    mean,
    var,
    rescale_grad,
    lr,
    eta,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    wd=0,
    clip_gradient=-1,
    out=None,
    name=None,
    **kwargs,
):
    """One step of AdamW: weight - eta * (lr * mean / (sqrt(var) + epsilon) + wd * weight), where mean and var run
    after the gradient and its square.

    `rescale_grad` is a number or an array of one element; where it is not finite, or 0, nothing changes.
    """
    rescale = float(rescale_grad.asscalar()) if hasattr(rescale_grad, "asscalar") else float(rescale_grad)
    if not _math.isfinite(rescale) or rescale == 0:
        return weight.copy() if out is None else out
    return _internal._adamw_update(
        weight,
        grad,
        mean,
        var,
        lr=lr,
        eta=eta,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wd=wd,
        rescale_grad=rescale,
        clip_gradient=clip_gradient,
        out=out,
        name=name,
        **kwargs,
    )


def isnan(data):
    """1 where an element is not a number, else 0, in the type of data."""
    return data != data


def isinf(data):
    """1 where an element is infinite, else 0, in the type of data."""
    return data.abs() == _math.inf


def isfinite(data):
    """1 where an element is neither infinite nor NaN, else 0, in the type of data."""
    return data.abs() < _math.inf


def rand_zipfian(true_classes, num_sampled, range_max, ctx=None):
    """Classes below range_max, class c with the probability log((c + 2) / (c + 1)) / log(range_max + 1): (those drawn,
    how often each of true_classes is expected among them, how often each of those drawn is)."""
    from . import random

    log_range = _math.log(range_max + 1)
    drawn = random.uniform(0, log_range, shape=(num_sampled,), dtype="float64", ctx=ctx)
    sampled = (drawn.exp() - 1).astype("int64") % range_max

    def expected(classes):
        numbers = classes.astype("float64")
        return ((numbers + 2) / (numbers + 1)).log() / log_range * num_sampled

    return sampled, expected(true_classes.as_in_context(sampled.context)), expected(sampled)


_functions.install(globals(), symbolic=False, prefixes=("_contrib_",))
