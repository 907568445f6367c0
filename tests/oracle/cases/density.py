# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Densities of random distributions, where samples can be: outside of that MXNet has numbers of no meaning."""

import numpy as np

from .common import case

# The parameters by name, each between two numbers; the samples likewise, and whether they are whole.
DISTRIBUTIONS = {
    "uniform": ({"low": (-2, -1), "high": (1, 2)}, (-1, 1), False),
    "normal": ({"mu": (-1, 1), "sigma": (0.5, 2)}, (-2, 2), False),
    "gamma": ({"alpha": (0.5, 3), "beta": (0.5, 2)}, (0.25, 3), False),
    "exponential": ({"lam": (0.5, 2)}, (0.25, 3), False),
    "poisson": ({"lam": (0.5, 4)}, (0, 6), True),
    "negative_binomial": ({"k": (1, 4), "p": (0.25, 0.75)}, (0, 6), True),
    "generalized_negative_binomial": ({"mu": (0.5, 3), "alpha": (0.25, 1)}, (0, 6), True),
}


def inputs(v, name, parameter_shape, sample_shape, dtype="float32"):
    parameters, (low, high), whole = DISTRIBUTIONS[name]
    sample = v.real(*sample_shape, dtype="float32", low=low, high=high)
    made = {"sample": (np.floor(sample) if whole else sample).astype(dtype)}
    for parameter, (low, high) in parameters.items():
        made[parameter] = v.real(*parameter_shape, dtype=dtype, low=low, high=high)
    return made


def simplex(v, shape, dtype="float32"):
    values = v.real(*shape, low=0.25, high=2).astype("float64")
    return (values / values.sum(axis=-1, keepdims=True)).astype(dtype)


def cases():
    for name in DISTRIBUTIONS:
        op = "_random_pdf_" + name
        for is_log in ("False", "True"):
            attrs = {"is_log": is_log}
            yield case(op, "rows_" + is_log, lambda v: inputs(v, name, (3,), (3, 5)), attrs)
            yield case(op, "one_each_" + is_log, lambda v: inputs(v, name, (2, 3), (2, 3)), attrs)
            yield case(op, "more_axes_" + is_log, lambda v: inputs(v, name, (2,), (2, 3, 4)), attrs)
        yield case(op, "add", lambda v: inputs(v, name, (3,), (3, 5)), grad_req="add")
        yield case(op[1:], "other_name", lambda v: inputs(v, name, (3,), (3, 5)))
        yield case(op, "bad_shapes", lambda v: inputs(v, name, (3,), (2, 3)), expect_error=True)
        # MXNet's derivative of log gamma has the precision of float32.
        yield case(op, "float64", lambda v: inputs(v, name, (3,), (3, 5), "float64"), grad_req="null")
    for is_log in ("False", "True"):
        attrs = {"is_log": is_log}
        yield case(
            "_random_pdf_dirichlet",
            "rows_" + is_log,
            lambda v: {"sample": simplex(v, (2, 4, 3)), "alpha": v.real(2, 3, low=0.5, high=3)},
            attrs,
        )
        yield case(
            "_random_pdf_dirichlet",
            "one_each_" + is_log,
            lambda v: {"sample": simplex(v, (2, 3)), "alpha": v.real(2, 3, low=0.5, high=3)},
            attrs,
        )
        yield case(
            "_random_pdf_dirichlet",
            "one_alpha_" + is_log,
            lambda v: {"sample": simplex(v, (5, 3)), "alpha": v.real(3, low=0.5, high=3)},
            attrs,
        )
