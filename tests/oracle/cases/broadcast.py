"""Binary operators that broadcast."""

import numpy as np

from .common import DTYPES, case

OPS = [
    "broadcast_" + n
    for n in (
        "add",
        "sub",
        "mul",
        "div",
        "power",
        "equal",
        "not_equal",
        "greater",
        "greater_equal",
        "lesser",
        "lesser_equal",
    )
]
SHAPES = [
    ("same", (2, 3), (2, 3)),
    ("column", (3, 4), (3, 1)),
    ("row", (1, 4), (3, 4)),
    ("cross", (3, 1), (1, 4)),
    ("odd", (3, 1, 7), (1, 5, 7)),
    ("one", (1,), (1,)),
    ("scalar_left", (1, 1), (2, 3)),
    ("four", (2, 1, 3, 1), (1, 5, 1, 2)),
    ("five", (2, 1, 3, 1, 2), (1, 2, 1, 3, 1)),
    ("six", (2, 1, 2, 1, 2, 1), (1, 2, 1, 3, 1, 2)),
    ("middle", (2, 3, 2), (2, 1, 2)),
]


def cases():
    for op in OPS:

        def two(a, b, dtype="float32", op=op):
            def make(v):
                lhs = v.real(*a, dtype=dtype, low=-3, high=3)
                rhs = v.real(*b, dtype=dtype, low=-3, high=3)
                if op == "broadcast_div":
                    rhs = v.nonzero(*b, dtype=dtype, low=-3, high=3)
                elif op == "broadcast_power":
                    signed = np.dtype(dtype).kind in "fi"
                    lhs = v.nonzero(*a, dtype=dtype, low=0.25, high=3)
                    rhs = v.real(*b, dtype=dtype, low=-2 if signed else 0, high=3)
                return {"lhs": lhs, "rhs": rhs}

            return make

        for name, a, b in SHAPES:
            yield case(op, name, two(a, b))
        for dtype in DTYPES:
            yield case(op, dtype, two((3, 1), (3, 4), dtype))
        yield case(op, "add", two((3, 1), (1, 4)), grad_req="add")
        yield case(op, "rank_differs", two((3, 4), (4,)))
        yield case(op, "bad_extent", two((3, 4), (3, 2)), expect_error=True)
        yield case(
            op, "mixed_dtype", lambda v: {"lhs": v.real(2, 2), "rhs": v.real(2, 1, dtype="float64")}, expect_error=True
        )
