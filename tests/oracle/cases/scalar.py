# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Operators between an array and a scalar attribute."""

import numpy as np

from .common import DTYPES, case

ARITHMETIC = [
    "_plus_scalar",
    "_minus_scalar",
    "_rminus_scalar",
    "_mul_scalar",
    "_div_scalar",
    "_rdiv_scalar",
    "_power_scalar",
    "_rpower_scalar",
]
COMPARE = [
    "_equal_scalar",
    "_not_equal_scalar",
    "_greater_scalar",
    "_greater_equal_scalar",
    "_lesser_scalar",
    "_lesser_equal_scalar",
]


def cases():
    for op in ARITHMETIC + COMPARE:

        def data(shape, dtype, op=op):
            def make(v):
                if op == "_power_scalar":
                    return {"data": v.nonzero(*shape, dtype=dtype, low=0.25, high=3)}
                if op == "_rdiv_scalar":
                    return {"data": v.nonzero(*shape, dtype=dtype, low=-3, high=3)}
                return {"data": v.real(*shape, dtype=dtype, low=-3, high=3)}

            return make

        for dtype in DTYPES:
            # "is_int" is what the Python front end adds when the scalar was a
            # Python int; integer arrays behave differently with and without.
            yield case(op, dtype + "_int", data((3, 4), dtype), {"scalar": "2", "is_int": "True"})
            yield case(op, dtype + "_frac", data((3, 4), dtype), {"scalar": "1.5", "is_int": "False"})
            yield case(op, dtype + "_plain", data((3, 4), dtype), {"scalar": "2.5"})
        yield case(op, "default", data((2, 3), "float32"))
        yield case(op, "zero", data((2, 3), "float32"), {"scalar": "0"})
        yield case(op, "negative", data((2, 3), "float32"), {"scalar": "-0.5"})
        yield case(op, "exponent", data((2, 3), "float32"), {"scalar": "1e-3"})
        yield case(op, "odd", data((3, 1, 7), "float32"), {"scalar": "3"})
        yield case(op, "one", data((1,), "float32"), {"scalar": "3"})
        yield case(op, "add", data((2, 5), "float32"), {"scalar": "3"}, grad_req="add")
        yield case(
            op,
            "special",
            lambda v: {"data": np.array([0.0, -0.0, 1, -1, 2, -2, np.inf, -np.inf, np.nan], "float32")},
            {"scalar": "2"},
        )
        yield case(op, "not_a_number", data((2,), "float32"), {"scalar": "two"}, expect_error=True)
    for scalar in ("0", "1", "2", "3", "0.5", "-1", "-0.5"):
        yield case(
            "_power_scalar",
            "base_" + scalar,
            lambda v: {"data": np.array([-2, -1, -0.5, 0, 0.5, 1, 2], "float32")},
            {"scalar": scalar},
        )
    for dtype in ("int32", "int8", "uint8", "int64"):
        for scalar in ("2", "-2", "0.5", "0"):
            for op in (
                "_div_scalar",
                "_rdiv_scalar",
                "_power_scalar",
                "_mul_scalar",
                "_minus_scalar",
                "_rminus_scalar",
            ):
                if op == "_div_scalar" and scalar == "0":
                    continue
                yield case(
                    op,
                    "whole_%s_%s" % (dtype, scalar),
                    lambda v: {"data": np.array([7, 5, 3, 2, 1], dtype)},
                    {"scalar": scalar, "is_int": "False" if "." in scalar else "True"},
                )
    yield case(
        "_plus_scalar", "large_int64", lambda v: {"data": np.array([2**53 + 1, -(2**53) - 1], "int64")}, {"scalar": "1"}
    )
