"""Random operators on symbols. With symbols as parameters, a sample for each of their elements."""

from .. import _functions, _symbind
from .._symbind import MXNetValueError, Symbol


def _draw(name, parameters, shape, dtype, kwargs):
    attributes = dict(kwargs)
    attributes["shape"] = (1,) if shape is None else shape
    if dtype is not None:
        attributes["dtype"] = dtype
    symbols = [value for value in parameters.values() if isinstance(value, Symbol)]
    if symbols:
        if len(symbols) != len(parameters):
            raise MXNetValueError(f"the parameters of {name} are all numbers or all symbols")
        if shape is None:
            del attributes["shape"]
        return _symbind._require_op("_sample_" + name).on_symbols(tuple(symbols), attributes)
    return _symbind._require_op("_random_" + name).on_symbols((), {**attributes, **parameters})


def uniform(low=0, high=1, shape=None, dtype=None, **kwargs):
    """Numbers between low and high, each as likely."""
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, kwargs)


def normal(loc=0, scale=1, shape=None, dtype=None, **kwargs):
    """Normal numbers of mean loc and deviation scale."""
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, kwargs)


def randn(*shape, **kwargs):
    """Normal numbers of the shape given by the arguments."""
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), shape or None, **kwargs)


def poisson(lam=1, shape=None, dtype=None, **kwargs):
    """Counts of events of rate lam."""
    return _draw("poisson", {"lam": lam}, shape, dtype, kwargs)


def exponential(scale=1, shape=None, dtype=None, **kwargs):
    """Waiting times of mean scale."""
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, kwargs)


def gamma(alpha=1, beta=1, shape=None, dtype=None, **kwargs):
    """Gamma-distributed numbers of shape alpha and scale beta."""
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, kwargs)


def negative_binomial(k=1, p=1, shape=None, dtype=None, **kwargs):
    """Failures before k successes of probability p."""
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, kwargs)


def generalized_negative_binomial(mu=1, alpha=1, shape=None, dtype=None, **kwargs):
    """Counts of mean mu and dispersion alpha."""
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, kwargs)


def randint(low, high, shape=None, dtype=None, **kwargs):
    """Integers from low to below high."""
    return _draw("randint", {"low": low, "high": high}, shape, dtype, kwargs)


def multinomial(data, shape=None, get_prob=True, dtype="int32", **kwargs):
    """Positions drawn with the probabilities in `data`, and the logarithms of these."""
    attributes = {"shape": shape, "get_prob": get_prob, "dtype": dtype, **kwargs}
    return _symbind._require_op("_sample_multinomial").on_symbols((data,), attributes)


def shuffle(data, **kwargs):
    """The rows in a random order."""
    return _symbind._require_op("_shuffle").on_symbols((data,), kwargs)


globals().update(_functions.random_like_functions(True, __name__))
