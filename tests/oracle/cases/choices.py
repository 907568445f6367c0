"""Maxima, minima, hypotenuses, remainders and logic of two arrays, or of an array and a number."""

import numpy as np

from .common import DTYPES, case

WORDS = ["maximum", "minimum", "hypot", "mod", "logical_and", "logical_or", "logical_xor"]


def special():
    return np.array([0.0, 1.0, -1.0, 2.5, -2.5, np.nan, 30.0], "float32")


def values(v, word, shape, dtype):
    if word == "mod":
        return v.nonzero(*shape, dtype=dtype, low=-3, high=3)
    if word.startswith("logical"):
        return v.real(*shape, dtype=dtype, low=-1, high=1)
    return v.real(*shape, dtype=dtype, low=-3, high=3)


def cases():
    for word in WORDS:

        def two(a, b, dtype="float32", word=word):
            return lambda v: {"lhs": values(v, word, a, dtype), "rhs": values(v, word, b, dtype)}

        op = "_" + word
        for dtype in DTYPES:
            yield case(op, dtype, two((3, 4), (3, 4), dtype))
        yield case(op, "add", two((2, 5), (2, 5)), grad_req="add")
        yield case(op, "ties", lambda v: {"lhs": np.array([1, 2], "float32"), "rhs": np.array([1, 3], "float32")})
        if word not in ("mod", "hypot"):
            yield case(op, "special", lambda v: {"lhs": np.repeat(special(), 7), "rhs": np.tile(special(), 7)})
        yield case(op, "mixed_shape", two((2, 3), (3, 2)), expect_error=True)

        op = "broadcast_" + word
        for dtype in DTYPES:
            yield case(op, dtype, two((3, 4), (1, 4), dtype))
        for name, a, b in [
            ("column", (3, 1), (3, 4)),
            ("both", (3, 1), (1, 4)),
            ("ranks", (2, 3, 4), (3, 1)),
            ("same", (2, 3), (2, 3)),
        ]:
            yield case(op, name, two(a, b))
        yield case(op, "add", two((2, 5), (1, 5)), grad_req="add")
        yield case(op, "bad", two((2, 3), (3, 2)), expect_error=True)

        for op in ["_%s_scalar" % word] + (["_rmod_scalar"] if word == "mod" else []):

            def data(shape, dtype, word=word):
                return lambda v: {"data": values(v, word, shape, dtype)}

            for dtype in DTYPES:
                yield case(op, dtype + "_int", data((3, 4), dtype), {"scalar": "2", "is_int": "True"})
                yield case(op, dtype + "_frac", data((3, 4), dtype), {"scalar": "1.5", "is_int": "False"})
            yield case(op, "negative", data((2, 3), "float32"), {"scalar": "-0.5"})
            yield case(op, "add", data((2, 5), "float32"), {"scalar": "1.25"}, grad_req="add")
    for dtype in ("float32", "int32", "int8", "int64"):
        yield case(
            "_mod",
            "signs_" + dtype,
            lambda v, dtype=dtype: {
                "lhs": np.array([5, -5, 5, -5, 6], dtype),
                "rhs": np.array([3, 3, -3, -3, 3], dtype),
            },
        )
