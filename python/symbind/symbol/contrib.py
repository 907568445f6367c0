"""Operators of MXNet's `contrib` namespace on symbols, as far as the registry has them."""

import math as _math

from .. import _adamw, _functions, _nested, _symbind
from . import _internal


def foreach(body, data, init_states, name="foreach"):
    """A loop over the slices of `data` along their first axis, as one operator of the network.

    `body(slices, states)` is called once, with symbols for one slice of each of the data and for the states; it returns
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


def while_loop(cond, func, loop_vars, max_iterations=None, name="while_loop"):
    """A loop that runs while a condition holds, as one operator of the network.

    `cond(*loop_vars)` returns a symbol of one number, `func(*loop_vars)` (outputs, new loop_vars); each is called once.
    Returns (the outputs of all steps stacked along a new first axis of max_iterations, with zeros after the last step,
    the last loop_vars).
    """
    if max_iterations is None:
        raise _symbind.MXNetValueError("while_loop needs max_iterations, the most steps that it makes")
    variables, variable_form = _nested.flatten(loop_vars, _symbind.Symbol, "loop_vars")
    forms = {}

    def arguments(flat):
        grouped = _nested.regroup(flat, variable_form)
        return (grouped,) if variable_form is None else tuple(grouped)

    def flat_func(flat):
        outputs, following = func(*arguments(flat))
        flat_outputs, forms["outputs"] = _nested.flatten(outputs, _symbind.Symbol, "the outputs of func")
        flat_next, _ = _nested.flatten(following, _symbind.Symbol, "the loop_vars of func")
        return flat_outputs, flat_next

    outputs, last = _symbind._while_loop(
        lambda flat: cond(*arguments(flat)), flat_func, variables, int(max_iterations), name
    )
    return _nested.regroup(outputs, forms["outputs"]), _nested.regroup(last, variable_form)


def cond(pred, then_func, else_func, name="cond"):
    """What then_func() returns where `pred`, a symbol of one number, is not 0, else what else_func() returns; as one
    operator of the network. Both return a symbol or (nested) lists of symbols of the same shapes and types."""
    forms = {}

    def flat(function, which):
        def body():
            outputs, forms[which] = _nested.flatten(function(), _symbind.Symbol, "the outputs of a branch")
            return outputs

        return body

    outputs = _symbind._cond(pred, flat(then_func, "then"), flat(else_func, "else"), name)
    if forms["then"] != forms["else"]:
        raise _symbind.MXNetValueError("the branches return outputs in different lists: their structures must agree")
    return _nested.regroup(outputs, forms["then"])


def _scale_symbol(rescale_grad, _weight):
    """The scale of gradients as a symbol of one element."""
    if isinstance(rescale_grad, _symbind.Symbol):
        return rescale_grad
    return _internal._full(shape=(1,), value=float(rescale_grad), dtype="float32")


adamw_update, mp_adamw_update = _adamw.updates(_internal, _scale_symbol)


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
