"""Operators of MXNet's `contrib` namespace on symbols, as far as the registry has them."""

import math as _math

from .. import _functions


def rand_zipfian(true_classes, num_sampled, range_max):
    """Classes below range_max, class c with the probability log((c + 2) / (c + 1)) / log(range_max + 1): (those drawn,
    how often each of true_classes is expected among them, how often each of those drawn is)."""
    from . import random

    log_range = _math.log(range_max + 1)
    drawn = random.uniform(0, log_range, shape=(num_sampled,), dtype="float64")
    sampled = (drawn.exp() - 1).astype("int64") % range_max

    def expected(classes):
        numbers = classes.astype("float64")
        return ((numbers + 2) / (numbers + 1)).log() / log_range * num_sampled

    return sampled, expected(true_classes), expected(sampled)


_functions.install(globals(), symbolic=True, prefixes=("_contrib_",))
