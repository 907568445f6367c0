# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
import numpy as np

from .common import DTYPES, case

TYPES = ["relu", "sigmoid", "tanh", "softrelu", "softsign"]


def cases():
    for kind in TYPES:
        attrs = {"act_type": kind}
        for dtype in DTYPES:
            yield case(
                "Activation", kind + "_" + dtype, lambda v: {"data": v.real(3, 4, dtype=dtype, low=-3, high=3)}, attrs
            )
        for name, shape in [("odd", (3, 1, 7)), ("one", (1,)), ("four", (2, 3, 2, 2)), ("five", (1, 2, 1, 3, 2))]:
            yield case("Activation", kind + "_" + name, lambda v: {"data": v.real(*shape, low=-4, high=4)}, attrs)
        yield case("Activation", kind + "_add", lambda v: {"data": v.real(2, 5)}, attrs, grad_req="add")
        for dtype in ("float32", "float64"):
            yield case(
                "Activation",
                kind + "_special_" + dtype,
                lambda v: {
                    "data": np.array(
                        [
                            0.0,
                            -0.0,
                            np.inf,
                            -np.inf,
                            np.nan,
                            19.0,
                            21.0,
                            -21.0,
                            30.0,
                            -30.0,
                            100.0,
                            -100.0,
                            1e-4,
                            -1e-4,
                            1e-8,
                        ],
                        dtype,
                    )
                },
                attrs,
            )
    yield case("Activation", "bad_type", lambda v: {"data": v.real(2, 2)}, {"act_type": "gelu"}, expect_error=True)
    yield case("Activation", "missing", lambda v: {"data": v.real(2, 2)}, expect_error=True)
