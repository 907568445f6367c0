# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Unary and same-shape binary operators."""

import numpy as np

from .common import DTYPES, case

BINARY = [
    "elemwise_add",
    "elemwise_sub",
    "elemwise_mul",
    "elemwise_div",
    "_power",
    "_equal",
    "_not_equal",
    "_greater",
    "_greater_equal",
    "_lesser",
    "_lesser_equal",
]
UNARY = ["negative", "relu", "sigmoid", "tanh", "exp", "log", "square", "sqrt", "_copy"]
POSITIVE = {"log", "sqrt"}


def special(dtype):
    return np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan, 30.0, -30.0, 200.0, -200.0], dtype)


def cases():
    for op in BINARY:

        def two(shape, dtype, op=op):
            def make(v):
                lhs = v.real(*shape, dtype=dtype, low=-3, high=3)
                rhs = v.real(*shape, dtype=dtype, low=-3, high=3)
                if op == "elemwise_div":
                    rhs = v.nonzero(*shape, dtype=dtype, low=-3, high=3)
                elif op == "_power":
                    signed = np.dtype(dtype).kind in "fi"
                    lhs = v.nonzero(*shape, dtype=dtype, low=0.25, high=3)
                    rhs = v.real(*shape, dtype=dtype, low=-2 if signed else 0, high=3)
                elif lhs.size > 2:
                    lhs.flat[1] = rhs.flat[1]
                return {"lhs": lhs, "rhs": rhs}

            return make

        for dtype in DTYPES:
            yield case(op, dtype, two((3, 4), dtype))
        yield case(op, "odd", two((3, 1, 7), "float32"))
        yield case(op, "one", two((1,), "float32"))
        yield case(op, "five_dims", two((2, 1, 3, 1, 2), "float32"))
        yield case(op, "add", two((2, 5), "float32"), grad_req="add")
        yield case(
            op, "special", lambda v: {"lhs": np.repeat(special("float32"), 13), "rhs": np.tile(special("float32"), 13)}
        )
        yield case(
            op, "mixed_dtype", lambda v: {"lhs": v.real(2, 2), "rhs": v.real(2, 2, dtype="float64")}, expect_error=True
        )
        yield case(op, "mixed_shape", lambda v: {"lhs": v.real(2, 3), "rhs": v.real(3, 2)}, expect_error=True)
    for dtype in ("int32", "int64", "int8"):
        yield case(
            "elemwise_div",
            "truncation_" + dtype,
            lambda v: {"lhs": np.array([7, -7, 7, -7, 1, 0], dtype), "rhs": np.array([2, 2, -2, -2, 3, 5], dtype)},
        )
        yield case(
            "_power",
            "negative_exponent_" + dtype,
            lambda v: {
                "lhs": np.array([2, -2, 1, -1, 3, 5, 0], dtype),
                "rhs": np.array([-1, -1, -3, -3, 2, 3, 0], dtype),
            },
        )
    yield case(
        "elemwise_mul",
        "wrap_int8",
        lambda v: {"lhs": np.array([100, -128, 127], "int8"), "rhs": np.array([2, -1, 127], "int8")},
    )
    yield case(
        "elemwise_add",
        "wrap_uint8",
        lambda v: {"lhs": np.array([250, 255], "uint8"), "rhs": np.array([10, 1], "uint8")},
    )
    yield case(
        "_power",
        "negative_base",
        lambda v: {
            "lhs": np.array([-2, -2, -2, 0, 0, 0], "float32"),
            "rhs": np.array([2, 3, 0.5, 0, 2, -1], "float32"),
        },
    )

    for op in UNARY:

        def one(shape, dtype, op=op):
            low = 0.25 if op in POSITIVE else -3
            return lambda v: {"data": v.real(*shape, dtype=dtype, low=low, high=3)}

        for dtype in DTYPES:
            yield case(op, dtype, one((3, 4), dtype))
        yield case(op, "odd", one((3, 1, 7), "float32"))
        yield case(op, "one", one((1,), "float32"))
        yield case(op, "add", one((2, 5), "float32"), grad_req="add")
        yield case(op, "special", lambda v: {"data": special("float32")})
        yield case(op, "special_float64", lambda v: {"data": special("float64")})
