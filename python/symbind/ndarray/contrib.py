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


_functions.install(globals(), symbolic=False, prefixes=("_contrib_",))
