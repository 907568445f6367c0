# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Cast between every pair of types."""

import numpy as np

from .common import DTYPES, case

EDGES = [0.0, -0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, -0.5, -0.75, -1.0, -1.5, -2.5, 3.999, -3.999, 100.0, 127.0]


def values(dtype):
    kind = np.dtype(dtype).kind
    if kind == "f":
        return np.array(EDGES, dtype)
    if kind == "b":
        return np.array([0, 1, 1, 0], dtype)
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 100, 127, info.min, info.max], dtype)


def cases():
    for source in DTYPES:
        for target in DTYPES:
            yield case("Cast", source + "_to_" + target, lambda v: {"data": values(source)}, {"dtype": target})
    # What C++ leaves undefined: recorded, to be read with care.
    for target in DTYPES:
        yield case(
            "Cast",
            "wild_to_" + target,
            lambda v: {
                "data": np.array(
                    [np.nan, np.inf, -np.inf, 300.0, -1.0, -129.0, -300.0, 1e10, -1e10, 65520.0, 1e-8], "float32"
                )
            },
            {"dtype": target},
        )
    yield case("Cast", "add", lambda v: {"data": v.real(3, 1, 7)}, {"dtype": "float64"}, grad_req="add")
    yield case("Cast", "one", lambda v: {"data": v.real(1)}, {"dtype": "int32"})
    yield case("Cast", "bad", lambda v: {"data": v.real(2)}, {"dtype": "float8"}, expect_error=True)
    yield case("Cast", "missing", lambda v: {"data": v.real(2)}, expect_error=True)
