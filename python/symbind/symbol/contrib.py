"""Operators of MXNet's `contrib` namespace on symbols, as far as the registry has them."""

import math as _math

from .. import _functions, _nested, _symbind


def foreach(body, data, init_states, name="foreach"):
    """A loop over the slices of `data` along their first axis, as one operator of the network.

    `body(slices, states)` is called once, with symbols for one slice of each of the data and for the states, and returns
    (outputs, new states). It may use symbols from outside. Data, states and outputs are symbols or (nested) lists of
    them. Returns (the outputs of all steps stacked along a new first axis, the last states).
    """
    flat_data, data_form = _nested.flatten(data, _symbind.Symbol, "data")
    flat_states, state_form = _nested.flatten(init_states, _symbind.Symbol, "init_states")
    forms = {}

    def flat_body(slices, states):
        outputs, next_states = body(_nested.regroup(slices, data_form), _nested.regroup(states, state_form))
        flat_outputs, forms["outputs"] = _nested.flatten(outputs, _symbind.Symbol, "the outputs of body")
        flat_next, forms["states"] = _nested.flatten(next_states, _symbind.Symbol, "the states of body")
        return flat_outputs, flat_next

    outputs, states = _symbind._foreach_loop(flat_body, flat_data, flat_states, name)
    return _nested.regroup(outputs, forms["outputs"]), _nested.regroup(states, forms["states"])


def boolean_mask(data, index, axis=0, name=None, attr=None, out=None, **kwargs):
    """Not possible in a network, whose shapes are known before it runs: mx.nd.contrib.boolean_mask selects slices of
    arrays, and mx.sym.where or mx.sym.SequenceMask keep the shape."""
    raise NotImplementedError(
        "boolean_mask has as many rows as index has elements that are not 0, and the shapes of a network do not depend "
        "on values: select by mx.nd.contrib.boolean_mask before the network, or keep the shape with mx.sym.where"
    )


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
