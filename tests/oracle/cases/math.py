"""The functions of mathematics, rounding, clip, hard_sigmoid, smooth_l1."""

import numpy as np

from .common import DTYPES, case

# (low, high) of the values tried
RANGES = {
    "rsqrt": (0.25, 4),
    "rcbrt": (0.25, 4),
    "cbrt": (0.25, 4),
    "log2": (0.25, 4),
    "log10": (0.25, 4),
    "log1p": (-0.5, 4),
    "tan": (-1, 1),
    "arcsin": (-0.75, 0.75),
    "arccos": (-0.75, 0.75),
    "arctanh": (-0.75, 0.75),
    "erfinv": (-0.75, 0.75),
    "arccosh": (1.25, 4),
    "gamma": (0.5, 4),
    "gammaln": (0.5, 4),
    "reciprocal": (0.25, 4),
}
FUNCTIONS = (
    "abs sign round rint ceil floor fix trunc rsqrt cbrt rcbrt log2 log10 log1p expm1 sin cos tan arcsin arccos arctan "
    "sinh cosh arcsinh arccosh arctanh degrees radians erf erfinv gamma gammaln reciprocal softsign logical_not"
).split()
# Where MXNet's own formula leaves a pole or a NaN by accident.
NO_SPECIAL = {"gamma", "gammaln", "erfinv", "rcbrt", "arctanh", "reciprocal", "rsqrt", "arccosh", "softsign", "expm1"}


def special(dtype):
    return np.array([0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan, 30.0, -30.0], dtype)


def cases():
    for op in FUNCTIONS:
        low, high = RANGES.get(op, (-3, 3))

        def data(shape, dtype, op=op, low=low, high=high):
            return lambda v: {"data": v.real(*shape, dtype=dtype, low=low, high=high)}

        for dtype in DTYPES:
            if np.dtype(dtype).kind != "f" and op in RANGES:
                continue
            one = case(op, dtype, data((3, 4), dtype))
            if op in ("gamma", "gammaln") and dtype == "float64":
                one["quirk"] = "the gradient has the digits of float32"
            yield one
        yield case(op, "odd", data((3, 1, 7), "float32"))
        yield case(op, "add", data((2, 5), "float32"), grad_req="add")
        if op not in NO_SPECIAL:
            yield case(op, "special", lambda v: {"data": special("float32")})
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.25, -0.75], "float32")
    for op in ("round", "rint", "ceil", "floor", "fix", "trunc"):
        yield case(op, "halves", lambda v: {"data": halves})
    for op in ("gamma", "gammaln"):
        yield case(op, "negative", lambda v: {"data": np.array([-0.5, -1.5, -2.25, -3.75, 7.5], "float32")})
    for op in ("cbrt", "rcbrt"):
        yield case(op, "negative", lambda v: {"data": np.array([-0.5, -8, -27], "float32")})
    for op in ("erfinv",):
        yield case(op, "edges", lambda v: {"data": np.array([-0.984375, -0.5, 0.5, 0.984375, 0.015625], "float32")})

    def data(shape, dtype="float32", low=-3, high=3):
        return lambda v: {"data": v.real(*shape, dtype=dtype, low=low, high=high)}

    op = "clip"
    for dtype in DTYPES:
        yield case(op, dtype, data((3, 4), dtype), {"a_min": "-1", "a_max": "1.5"})
    yield case(
        op, "at_the_edge", lambda v: {"data": np.array([-1, 1, 0.5, 2, -2], "float32")}, {"a_min": -1, "a_max": 1}
    )
    yield case(op, "add", data((2, 5)), {"a_min": "-1", "a_max": "1"}, grad_req="add")
    yield case(op, "special", lambda v: {"data": special("float32")}, {"a_min": "-1", "a_max": "1"})
    yield case(op, "no_max", data((2, 5)), {"a_min": "-1"}, expect_error=True)

    op = "hard_sigmoid"
    for dtype in DTYPES:
        yield case(op, dtype, data((3, 4), dtype))
    yield case(op, "slope", data((3, 4)), {"alpha": "0.5"})
    yield case(op, "shift", data((3, 4)), {"beta": "0.25"})
    yield case(op, "add", data((2, 5)), grad_req="add")

    op = "smooth_l1"
    for dtype in ("float32", "float64", "float16"):
        yield case(op, dtype, data((3, 4), dtype), {"scalar": "1"})
    yield case(op, "narrow", data((3, 4), low=-1, high=1), {"scalar": "2"})
    yield case(op, "wide", data((3, 4)), {"scalar": "0.5"})
    yield case(op, "add", data((2, 5)), {"scalar": "1.5"}, grad_req="add")
