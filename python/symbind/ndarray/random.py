"""Random arrays. With arrays as parameters, a sample for each of their elements."""

from .. import _functions, _symbind
from .._symbind import Context, MXNetValueError, NDArray


def _draw(name, parameters, shape, dtype, ctx, out, kwargs):
    """From `_random_name` for numbers, from `_sample_name` for arrays."""
    if isinstance(dtype, Context):  # older versions of MXNet take the context and `out` after the shape
        dtype, ctx, out = None, dtype, out if ctx is None else ctx
    arrays = [value for value in parameters.values() if isinstance(value, NDArray)]
    attributes = dict(kwargs)
    if shape is not None:
        attributes["shape"] = shape
    if dtype is not None:
        attributes["dtype"] = dtype
    if arrays:
        if len(arrays) != len(parameters):
            raise MXNetValueError(f"the parameters of {name} are all numbers or all arrays")
        return _symbind._require_op("_sample_" + name).on_arrays(tuple(arrays), {**attributes, "out": out})
    if out is not None:
        attributes.setdefault("shape", out.shape)
        attributes.setdefault("dtype", out.dtype)
        ctx = out.context
    elif shape is None:
        attributes["shape"] = (1,)
    return _symbind._require_op("_random_" + name).on_arrays((), {**attributes, **parameters, "ctx": ctx, "out": out})


def uniform(low=0, high=1, shape=None, dtype=None, ctx=None, out=None, **kwargs):
    """Numbers between low and high, each as likely."""
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def normal(loc=0, scale=1, shape=None, dtype=None, ctx=None, out=None, **kwargs):
    """Normal numbers of mean loc and deviation scale."""
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out, kwargs)


def randn(*shape, **kwargs):
    """Normal numbers of the shape given by the arguments."""
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(loc, scale, shape or None, **kwargs)


def poisson(lam=1, shape=None, dtype=None, ctx=None, out=None, **kwargs):
    """Counts of events of rate lam."""
    return _draw("poisson", {"lam": lam}, shape, dtype, ctx, out, kwargs)


def exponential(scale=1, shape=None, dtype=None, ctx=None, out=None, **kwargs):
    """Waiting times of mean scale."""
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out, kwargs)


def gamma(alpha=1, beta=1, shape=None, dtype=None, ctx=None, out=None, **kwargs):
    """Gamma-distributed numbers of shape alpha and scale beta."""
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out, kwargs)


def negative_binomial(k=1, p=1, shape=None, dtype=None, ctx=None, out=None, **kwargs):
    """Failures before k successes of probability p."""
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out, kwargs)


def generalized_negative_binomial(mu=1, alpha=1, shape=None, dtype=None, ctx=None, out=None, **kwargs):
    """Counts of mean mu and dispersion alpha."""
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, ctx, out, kwargs)


def randint(low, high, shape=None, dtype=None, ctx=None, out=None, **kwargs):
    """Integers from low to below high."""
    return _draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def multinomial(data, shape=None, get_prob=False, out=None, dtype="int32", **kwargs):
    """Positions drawn with the probabilities in `data`."""
    attributes = {"shape": shape, "get_prob": get_prob, "dtype": dtype, "out": out, **kwargs}
    return _symbind._require_op("_sample_multinomial").on_arrays((data,), attributes)


def shuffle(data, **kwargs):
    """The rows in a random order."""
    return _symbind._require_op("_shuffle").on_arrays((data,), kwargs)


globals().update(_functions.random_like_functions(False, __name__))
