"""Checkers for networks, operators and optimizers, against NumPy and against each other."""

import contextlib as _contextlib
import numbers as _numbers
import os as _os
import platform as _platform
import time as _time

import numpy as np

from . import _symbind
from ._test_arrays import (  # noqa: F401
    _as_numpy,
    _by_dtype,
    _exact,
    _without_nan,
    almost_equal,
    almost_equal_ignore_nan,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    assign_each,
    assign_each2,
    checkShapes,
    collapse_sum_like,
    compare_ndarray_tuple,
    create_2d_tensor,
    create_vector,
    default_atols,
    default_context,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    list_gpus,
    locationError,
    np_reduce,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    random_sample,
    random_uniform_arrays,
    same,
    same_array,
    set_default_context,
)
from ._test_data import (  # noqa: F401
    download,
    download_model,
    get_bz2_data,
    get_cifar10,
    get_im2rec_path,
    get_mnist,
    get_mnist_iterator,
    get_mnist_pkl,
    get_mnist_ubyte,
    get_zip_data,
)
from ._test_generators import (  # noqa: F401
    chi_square_check,
    gen_buckets_probs_with_ppf,
    get_identity_mat,
    get_identity_mat_batch,
    mean_check,
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
    rand_coord_2d,
    var_check,
    verify_generator,
)
from .io import DataIter
from .ndarray import NDArray, array
from .symbol import Symbol

# ---- networks --------------------------------------------------------------------------------------------------------


def simple_forward(sym, ctx=None, is_train=False, **inputs):
    """The outputs of a network for NumPy inputs, as NumPy arrays; a single one comes bare."""
    ctx = ctx or default_context()
    executor = sym.bind(ctx, {name: array(value, ctx=ctx) for name, value in inputs.items()})
    outputs = [output.asnumpy() for output in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def _parse_location(sym, location, ctx, dtype=np.float32):
    """Arguments by name, from a dict or a list in the order of list_arguments()."""
    names = sym.list_arguments()
    if isinstance(location, dict):
        if set(location) != set(names):
            raise _symbind.MXNetValueError(f"expected arrays for {sorted(names)}, got {sorted(location)}")
        pairs = location
    else:
        if len(location) != len(names):
            raise _symbind.MXNetValueError(f"expected {len(names)} arrays, for {names}; {len(location)} are given")
        pairs = dict(zip(names, location))
    return {name: _on_context(value, ctx, dtype) for name, value in pairs.items()}


def _parse_aux_states(sym, aux_states, ctx, dtype=np.float32):
    """Auxiliary states by name, from None, a dict or a list."""
    if aux_states is None:
        return None
    names = sym.list_auxiliary_states()
    pairs = aux_states if isinstance(aux_states, dict) else dict(zip(names, aux_states))
    if set(pairs) != set(names):
        raise _symbind.MXNetValueError(f"expected auxiliary states {sorted(names)}, got {sorted(pairs)}")
    return {name: _on_context(value, ctx, dtype) for name, value in pairs.items()}


def _on_context(value, ctx, dtype):
    if isinstance(value, NDArray):
        return array(value, ctx=ctx)
    value = np.asarray(value)
    kind = value.dtype if dtype == "asnumpy" or value.dtype.kind not in "f" and dtype is None else dtype
    return array(value, ctx=ctx, dtype=kind)


def _expected(expected, names):
    return expected if isinstance(expected, dict) else dict(zip(names, expected))


def check_symbolic_forward(
    sym, location, expected, rtol=None, atol=None, aux_states=None, ctx=None, equal_nan=False, dtype=np.float32
):
    """Compares a network's outputs with expected values, and returns them."""
    ctx = ctx or default_context()
    args = _parse_location(sym, location, ctx, dtype)
    executor = sym.bind(ctx, args, aux_states=_parse_aux_states(sym, aux_states, ctx, dtype))
    outputs = executor.forward(is_train=False)
    due = _expected(expected, sym.list_outputs())
    for name, output in zip(sym.list_outputs(), outputs):
        if name in due:
            labels = (f"EXPECTED_{name}", f"FORWARD_{name}")
            assert_almost_equal(due[name], output, rtol, atol, labels, equal_nan)
    return outputs


def check_symbolic_backward(
    sym,
    location,
    out_grads,
    expected,
    rtol=None,
    atol=None,
    aux_states=None,
    grad_req="write",
    ctx=None,
    grad_stypes=None,
    equal_nan=False,
    dtype=np.float32,
):
    """Compares a network's gradients with expected values, for every kind of grad_req, and returns them."""
    ctx = ctx or default_context()
    names = sym.list_arguments()
    args = _parse_location(sym, location, ctx, dtype)
    due = _expected(expected, names)
    requests = _requests(grad_req, names)
    before = {name: np.random.normal(size=args[name].shape) for name in due}
    grads = {name: array(before[name], ctx=ctx, dtype=args[name].dtype) for name in due}
    before = {name: grads[name].asnumpy() for name in due}
    given = {name: req for name, req in requests.items() if name in due}
    executor = sym.bind(
        ctx,
        args,
        args_grad=grads,
        grad_req={name: given.get(name, "null") for name in names},
        aux_states=_parse_aux_states(sym, aux_states, ctx, dtype),
    )
    executor.forward(is_train=True)
    if isinstance(out_grads, tuple | list):
        out_grads = [None if grad is None else _on_context(grad, ctx, dtype) for grad in out_grads]
    elif isinstance(out_grads, dict):
        out_grads = {name: _on_context(grad, ctx, dtype) for name, grad in out_grads.items()}
    elif out_grads is not None:
        out_grads = _on_context(out_grads, ctx, dtype)
    executor.backward(out_grads)
    for name, wanted in due.items():
        _compare_gradient(name, requests.get(name, "null"), wanted, before[name], grads[name], rtol, atol, equal_nan)
    return executor.grad_dict


def _requests(grad_req, names):
    if isinstance(grad_req, str):
        return dict.fromkeys(names, grad_req)
    return grad_req if isinstance(grad_req, dict) else dict(zip(names, grad_req))


def _compare_gradient(name, request, wanted, before, grad, rtol, atol, equal_nan=False):
    labels = (f"EXPECTED_{name}", f"BACKWARD_{name}")
    wanted = _as_numpy(wanted)
    if request == "write":
        assert_almost_equal(wanted, grad, rtol, atol, labels, equal_nan)
    elif request == "add":
        assert_almost_equal(wanted, grad.asnumpy() - before, rtol, atol, labels, equal_nan)
    elif request == "null":
        assert_almost_equal(before, grad, rtol, atol, labels, equal_nan)
    else:
        raise _symbind.MXNetValueError(f"a grad_req is 'write', 'add' or 'null', not {request!r}")


def numeric_grad(executor, location, aux_states=None, eps=1e-4, use_forward_train=True, dtype=np.float32, weights=None):
    """Gradients by central differences of the sum of an executor's outputs, each times its weights where given."""

    def total():
        if aux_states is not None:
            for name, value in aux_states.items():
                executor.aux_dict[name][:] = value
        outputs = executor.forward(is_train=use_forward_train)
        outputs = [output.asnumpy().astype(np.float64) for output in outputs]
        return sum((out * by).sum() for out, by in zip(outputs, weights or [1.0] * len(outputs)))

    result = {}
    for name, values in location.items():
        values = np.array(_as_numpy(values), dtype=dtype)
        grad = np.zeros(values.shape, dtype=np.float64)
        for at in np.ndindex(values.shape):
            middle = values[at]
            values[at] = middle + eps / 2
            above_at = float(values[at])
            executor.arg_dict[name][:] = values
            above = total()
            values[at] = middle - eps / 2
            below_at = float(values[at])
            executor.arg_dict[name][:] = values
            below = total()
            values[at] = middle
            grad[at] = (above - below) / (above_at - below_at)
        executor.arg_dict[name][:] = values
        result[name] = grad.astype(dtype)
    return result


def check_numeric_gradient(
    sym,
    location,
    aux_states=None,
    numeric_eps=None,
    rtol=None,
    atol=None,
    grad_nodes=None,
    use_forward_train=True,
    ctx=None,
    grad_stype_dict=None,
    dtype=np.float32,
):
    """Compares a network's gradients with finite differences of its outputs times random weights."""
    ctx = ctx or default_context()
    dtype = np.dtype(dtype)
    eps = default_numeric_eps().get(dtype, 1e-4) if numeric_eps is None else numeric_eps
    args = _parse_location(sym, location, ctx, dtype)
    aux = _parse_aux_states(sym, aux_states, ctx, dtype)
    aux_values = None if aux is None else {name: value.asnumpy() for name, value in aux.items()}
    if grad_nodes is None:
        requests = dict.fromkeys(sym.list_arguments(), "write")
    else:
        requests = dict(grad_nodes) if isinstance(grad_nodes, dict) else dict.fromkeys(grad_nodes, "write")
    before = {name: np.random.normal(0, 0.01, size=args[name].shape).astype(dtype) for name in requests}
    grads = {name: array(before[name], ctx=ctx, dtype=dtype) for name in requests}
    req = {name: requests.get(name, "null") for name in sym.list_arguments()}
    executor = sym.bind(ctx, args, args_grad=grads, grad_req=req, aux_states=aux)
    outputs = executor.forward(is_train=True)
    # Away from zero, so that no output drops out.
    weights = [np.random.rand(*output.shape) + 0.1 for output in outputs]
    executor.backward([array(weight, ctx=ctx, dtype=dtype) for weight in weights])
    symbolic = {name: grad.asnumpy() for name, grad in grads.items()}
    # Running statistics moved in forward; the differences are taken where it began.
    moved = {name: args[name].asnumpy() for name in requests if requests[name] != "null"}
    numeric = numeric_grad(executor, moved, aux_values, eps, use_forward_train, dtype, weights)
    for name, request in requests.items():
        labels = (f"NUMERICAL_{name}", f"BACKWARD_{name}")
        if request == "null":
            assert_almost_equal(before[name], symbolic[name], rtol, atol, labels)
        else:
            found = symbolic[name] - before[name] if request == "add" else symbolic[name]
            assert_almost_equal(numeric[name], found, rtol, atol, labels)


_CONSISTENCY = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-5, "uint8": 0, "int8": 0, "int32": 0, "int64": 0}


def check_consistency(
    sym,
    ctx_list,
    scale=1.0,
    grad_req="write",
    arg_params=None,
    aux_params=None,
    rtol=None,
    atol=None,
    raise_on_err=True,
    ground_truth=None,
    equal_nan=False,
    use_uniform=False,
    rand_type=np.float64,
):
    """Runs one network, or one per entry, on several contexts and in several types, and compares with the most exact
    of them. An entry of ctx_list holds `ctx`, the shapes of inputs by name, and `type_dict`. Gives what it compared
    with."""
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    assert len(symbols) == len(ctx_list), "the number of networks must be that of the entries of ctx_list"
    executors = [one.simple_bind(grad_req=grad_req, **entry) for one, entry in zip(symbols, ctx_list)]
    draw = (
        (lambda size: np.random.uniform(-0.5, 0.5, size)) if use_uniform else (lambda size: np.random.normal(size=size))
    )
    arg_params = dict(arg_params or {})
    for name, value in executors[0].arg_dict.items():
        if name not in arg_params:
            arg_params[name] = (draw(value.shape) * scale).astype(rand_type)
    aux_params = dict(aux_params or {})
    for executor in executors:
        for name, value in executor.arg_dict.items():
            value[:] = _as_numpy(arg_params[name]).astype(np.dtype(value.dtype))
        for name, value in executor.aux_dict.items():
            value[:] = _as_numpy(aux_params.get(name, 0))
        for value in executor.grad_dict.values():
            if value is not None:
                value[:] = 0
    kinds = [np.dtype(executor.outputs[0].dtype) for executor in executors]
    exact = max(range(len(executors)), key=lambda index: kinds[index].itemsize)

    def compare(truth, names, arrays):
        for index, executor in enumerate(executors):
            if index == exact and ground_truth is None:
                continue
            tolerance = _CONSISTENCY.get(kinds[index].name, 1e-3)
            for name, value in arrays(executor).items():
                if value is None or name not in truth:
                    continue
                try:
                    assert_almost_equal(
                        value,
                        truth[name].astype(np.dtype(value.dtype))
                        if isinstance(truth[name], np.ndarray)
                        else truth[name],
                        tolerance if rtol is None else rtol,
                        tolerance if atol is None else atol,
                        (f"{ctx_list[index]['ctx']} {kinds[index]} {name}", "ground truth"),
                        equal_nan,
                    )
                except AssertionError as error:
                    if raise_on_err:
                        raise
                    print(f"{names}: {error}")

    for training in (False, True) if grad_req != "null" else (False,):
        for executor in executors:
            executor.forward(is_train=training)
        truth = ground_truth or {name: value.asnumpy() for name, value in executors[exact].output_dict.items()}
        compare(truth, "forward", lambda executor: executor.output_dict)
    if grad_req != "null":
        out_grads = [np.random.normal(size=output.shape) for output in executors[exact].outputs]
        for executor in executors:
            executor.backward(
                [array(grad, ctx=out.context, dtype=out.dtype) for grad, out in zip(out_grads, executor.outputs)]
            )
        gradients = {n: v.asnumpy() for n, v in executors[exact].grad_dict.items() if v is not None}
        truth = {**truth, **(ground_truth or gradients)}
        compare(truth, "backward", lambda executor: executor.grad_dict)
    context = ctx_list[exact]["ctx"]
    return {n: array(v, ctx=context, dtype=v.dtype) if isinstance(v, np.ndarray) else v for n, v in truth.items()}


def check_speed(sym, location=None, ctx=None, N=20, grad_req=None, typ="whole", **kwargs):
    """Seconds that a forward and backward ("whole"), or a forward, takes: the mean of N."""
    ctx = ctx or default_context()
    if typ not in ("whole", "forward"):
        raise _symbind.MXNetValueError(f"typ is 'whole' or 'forward', not {typ!r}")
    if location is None:
        executor = sym.simple_bind(grad_req=grad_req or "write", ctx=ctx, **kwargs)
        location = {name: np.random.normal(size=value.shape) for name, value in executor.arg_dict.items()}
    else:
        shapes = {name: value.shape for name, value in location.items()}
        executor = sym.simple_bind(grad_req=grad_req or "write", ctx=ctx, **shapes)
    for name, value in location.items():
        executor.arg_dict[name][:] = value

    def once():
        executor.forward(is_train=typ == "whole")
        if typ == "whole":
            executor.backward(executor.outputs)
        for output in executor.outputs:
            output.wait_to_read()

    once()
    begin = _time.perf_counter()
    for _ in range(N):
        once()
    _symbind.waitall()
    return (_time.perf_counter() - begin) / N


def same_symbol_structure(sym1, sym2):
    """Whether two networks are the same operators wired in the same way, whatever their names."""
    import json

    left, right = (json.loads(sym.tojson())["nodes"] for sym in (sym1, sym2))
    return [(node["op"], node["inputs"]) for node in left] == [(node["op"], node["inputs"]) for node in right]


# ---- optimizers and iterators ----------------------------------------------------------------------------------------


def compare_optimizer(
    opt1,
    opt2,
    shape,
    dtype,
    w_stype="default",
    g_stype="default",
    rtol=1e-4,
    atol=1e-5,
    compare_states=True,
    ntensors=1,
):
    """Compares weights and states after one step of two optimizers from the same start."""
    if (w_stype, g_stype) != ("default", "default"):
        raise NotImplementedError("arrays are dense here: there are no other storage types")
    several = isinstance(shape, list) and shape and not isinstance(shape[0], int)
    shapes = list(shape) if several else [shape] * ntensors
    many = len(shapes) > 1
    weights = [[rand_ndarray(each, dtype=dtype) for each in shapes]]
    weights.append([weight.copy() for weight in weights[0]])
    grads = [rand_ndarray(each, dtype=dtype) for each in shapes]
    states = []
    for optimizer, own in zip((opt1, opt2), weights):
        states.append([optimizer.create_state_multi_precision(i, weight) for i, weight in enumerate(own)])
    for left, right in zip(*states):
        compare_ndarray_tuple(left, right, rtol, atol)
    for optimizer, own, state in zip((opt1, opt2), weights, states):
        gradients = [grad.copy() for grad in grads]
        if many:
            optimizer.update_multi_precision(list(range(len(own))), own, gradients, state)
        else:
            optimizer.update_multi_precision(0, own[0], gradients[0], state[0])
    if compare_states:
        for left, right in zip(*states):
            compare_ndarray_tuple(left, right, rtol, atol)
    for left, right in zip(*weights):
        assert_almost_equal(left, right, rtol, atol)


class DummyIter(DataIter):
    """Repeats the first batch of an iterator without end: for timing without reading data."""

    def __init__(self, real_iter):
        super().__init__()
        self.real_iter = real_iter
        self.batch_size = real_iter.batch_size
        self.the_batch = next(iter(real_iter))

    @property
    def provide_data(self):
        return self.real_iter.provide_data

    @property
    def provide_label(self):
        return self.real_iter.provide_label

    def reset(self):
        """Nothing changes."""

    def next(self):
        """The batch."""
        return self.the_batch


# ---- the process -----------------------------------------------------------------------------------------------------


@_contextlib.contextmanager
def environment(*args):
    """Environment variables for a `with` block: a name and a value, or a dict. None removes a variable."""
    wanted = args[0] if len(args) == 1 else {args[0]: args[1]}
    before = {name: _os.environ.get(name) for name in wanted}
    _set_all(wanted)
    try:
        yield
    finally:
        _set_all(before)


def _set_all(variables):
    for name, value in variables.items():
        if value is None:
            _os.environ.pop(name, None)
        else:
            _os.environ[name] = str(value)


def is_aarch64_run():
    """Is this an ARM processor of 64 bits?"""
    return _platform.machine() == "aarch64"


def is_cd_run():
    """Is this a run of MXNet's own delivery? (The environment variable CD_JOB is 1.)"""
    return _os.environ.get("CD_JOB", "0") == "1"


def is_op_runnable():
    """True: no operator here depends on the kind of GPU."""
    return True


def set_env_var(key, val, default_val=""):
    """Sets an environment variable and returns its previous value, or the default."""
    before = _os.environ.get(key, default_val)
    _os.environ[key] = str(val)
    return before


@_contextlib.contextmanager
def discard_stderr():
    """Throws away what the process writes to standard error in a `with` block, C++ code included."""
    try:
        number = 2
        kept = _os.dup(number)
        with open(_os.devnull, "w", encoding="utf-8") as nothing:
            _os.dup2(nothing.fileno(), number)
            try:
                yield
            finally:
                _os.dup2(kept, number)
    finally:
        _os.close(kept)


def retry(n):
    """A decorator: repeats a failing test with another random seed, up to n runs."""
    if not isinstance(n, _numbers.Integral) or n < 1:
        raise _symbind.MXNetValueError(f"expected a number of tries, not {n!r}")

    def decorate(function):
        import functools

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            for attempt in range(n):
                try:
                    return function(*args, **kwargs)
                except AssertionError:
                    if attempt == n - 1:
                        raise

        return wrapped

    return decorate
