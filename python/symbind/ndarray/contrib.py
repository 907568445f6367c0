"""Operators of MXNet's `contrib` namespace on arrays, as far as the registry has them."""

import math as _math

from .. import _adamw, _functions, _nested, _symbind
from . import _internal


def _stacked(rows):
    """A list of rows, each a list of arrays, as a list of arrays with a new first axis."""
    return [_internal.stack(*column, axis=0) for column in zip(*rows)]


def foreach(body, data, init_states):
    """Calls `body(slices, states)` for every slice of `data` along their first axis; it returns (outputs, new states).
    Returns (the outputs stacked along a new first axis, the last states). Data, states and outputs are arrays or
    (nested) lists of them."""
    flat_data, data_form = _nested.flatten(data, _symbind.NDArray, "data")
    flat_states, state_form = _nested.flatten(init_states, _symbind.NDArray, "init_states")
    if not flat_data or any(each.shape[0] != flat_data[0].shape[0] for each in flat_data):
        raise _symbind.MXNetValueError(f"the arrays to loop over have {[each.shape[0] for each in flat_data]} slices")
    rows, output_form, states = [], None, _nested.regroup(flat_states, state_form)
    for step in range(flat_data[0].shape[0]):
        outputs, states = body(_nested.regroup([each[step] for each in flat_data], data_form), states)
        flat_outputs, output_form = _nested.flatten(outputs, _symbind.NDArray, "the outputs of body")
        rows.append(flat_outputs)
    return (_nested.regroup(_stacked(rows), output_form) if rows else []), states


def _is_true(value):
    return bool(value.asscalar()) if isinstance(value, _symbind.NDArray) else bool(value)


def while_loop(cond, func, loop_vars, max_iterations=None):
    """Calls `func(*loop_vars)` while `cond(*loop_vars)` holds, at most max_iterations times; it returns (outputs, new
    loop_vars). Returns (the outputs stacked along a new first axis of max_iterations, whose rest is zeros, the last
    loop_vars)."""
    if max_iterations is None or max_iterations < 0:
        raise _symbind.MXNetValueError("while_loop needs max_iterations, a number of steps")
    single = isinstance(loop_vars, _symbind.NDArray)
    variables = [loop_vars] if single else list(loop_vars)
    rows, output_form = [], []
    while len(rows) < max_iterations and _is_true(cond(*variables)):
        outputs, following = func(*variables)
        flat_outputs, output_form = _nested.flatten(outputs, _symbind.NDArray, "the outputs of func")
        following = [following] if isinstance(following, _symbind.NDArray) else list(following)
        if len(following) != len(variables):
            raise _symbind.MXNetValueError(f"func takes {len(variables)} loop_vars and returns {len(following)}")
        variables = following
        rows.append(flat_outputs)
    rest = max_iterations - len(rows)
    outputs = []
    for column in _stacked(rows) if rows else []:
        zeros = _internal._zeros(shape=(rest, *column.shape[1:]), ctx=str(column.context), dtype=column.dtype)
        outputs.append(_internal.concat(column, zeros, dim=0) if rest else column)
    return (_nested.regroup(outputs, output_form) if rows else []), variables[0] if single else variables


def cond(pred, then_func, else_func):
    """What then_func() returns if `pred`, an array of one element, is not 0, else what else_func() returns."""
    return then_func() if _is_true(pred) else else_func()


def _scale_array(rescale_grad, weight):
    """The scale of gradients as an array of one element, on the context of the weight."""
    if isinstance(rescale_grad, _symbind.NDArray):
        return rescale_grad.as_in_context(weight.context).astype("float32").reshape((1,))
    return _internal._full(shape=(1,), value=float(rescale_grad), ctx=str(weight.context), dtype="float32")


adamw_update, mp_adamw_update = _adamw.updates(_internal, _scale_array)


def _array_by_array(*lists):
    """The arrays of each weight after those of the one before."""
    lengths = {len(arrays) for arrays in lists}
    if len(lengths) != 1:
        counts = [len(arrays) for arrays in lists]
        raise _symbind.MXNetValueError(f"there must be as many arrays of each kind: {counts}")
    return [array for of_weight in zip(*lists, strict=True) for array in of_weight]


def multi_adamw_update(weights, grads, mean, var, rescale_grad, lrs, wds, etas, out=None, name=None, size=0, **kwargs):
    """adamw_update of several weights in one call: lists of arrays and of numbers, an element per weight."""
    arrays = _array_by_array(weights, grads, mean, var)
    return _internal._multi_adamw_update(
        *arrays,
        _scale_array(rescale_grad, weights[0]),
        lrs=lrs,
        wds=wds,
        etas=etas,
        num_weights=size or len(weights),
        out=out,
        name=name,
        **kwargs,
    )


def multi_mp_adamw_update(
    weights, grads, mean, var, weights32, rescale_grad, lrs, wds, etas, out=None, name=None, size=0, **kwargs
):
    """mp_adamw_update of several weights in one call: lists of arrays and of numbers, an element per weight."""
    arrays = _array_by_array(weights, grads, mean, var, weights32)
    return _internal._multi_mp_adamw_update(
        *arrays,
        _scale_array(rescale_grad, weights[0]),
        lrs=lrs,
        wds=wds,
        etas=etas,
        num_weights=size or len(weights),
        out=out,
        name=name,
        **kwargs,
    )


def multi_lamb_update(weights, grads, mean, var, step_count, lrs, wds, out=None, num_tensors=0, **kwargs):
    """One step of LAMB for several weights in one call: lists of arrays and of numbers, an element per weight."""
    return _internal._multi_lamb_update(
        *_array_by_array(weights, grads, mean, var),
        step_count=step_count,
        learning_rates=lrs,
        wds=wds,
        num_tensors=num_tensors or len(weights),
        out=out,
        **kwargs,
    )


def multi_mp_lamb_update(weights, grads, mean, var, weights32, step_count, lrs, wds, out=None, num_tensors=0, **kwargs):
    """multi_lamb_update in mixed precision: `weights32`, the float32 copies of 16-bit weights, are updated, and the
    results are rounded from them."""
    return _internal._multi_mp_lamb_update(
        *_array_by_array(weights, grads, mean, var, weights32),
        step_count=step_count,
        learning_rates=lrs,
        wds=wds,
        num_tensors=num_tensors or len(weights),
        out=out,
        **kwargs,
    )


def boolean_mask(data, index, axis=0, out=None, name=None, **kwargs):
    """The slices of data along axis 0 whose element of index is not 0. How many there are depends on the values: it is
    a function of arrays, and no operator of networks."""
    if axis != 0:
        raise _symbind.MXNetValueError(f"boolean_mask works along axis 0, not {axis}")
    if index.ndim != 1 or data.ndim < 1 or index.shape[0] != data.shape[0]:
        raise _symbind.MXNetValueError(
            f"index must have one element per slice of data: index {index.shape}, data {data.shape}"
        )
    rows = index.asnumpy().nonzero()[0]
    if rows.size == 0:
        from . import zeros

        result = zeros((0, *data.shape[1:]), ctx=data.context, dtype=data.dtype)
    else:
        from . import array, take

        result = take(data, array(rows, ctx=data.context, dtype="int64"), axis=0)
    return result if out is None else result.copyto(out)


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
