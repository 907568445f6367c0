"""Dropout where the answer does not depend on random numbers.

Training with 0 < p < 1 is recorded by shape and type only.
"""

from .common import DTYPES, case


def data(*shape, dtype="float32"):
    return lambda v: {"data": v.real(*shape, dtype=dtype)}


def cases():
    op = "Dropout"
    for dtype in DTYPES:
        yield case(op, dtype + "_p0", data(3, 4, dtype=dtype), {"p": "0"})
        yield case(op, dtype + "_shape", data(3, 4, dtype=dtype), compare="shape")
    yield case(op, "p0_odd", data(3, 1, 7), {"p": "0.0"})
    yield case(op, "p0_axes", data(3, 4), {"p": "0", "axes": "(0,)"})
    yield case(op, "p0_always", data(3, 4), {"p": "0", "mode": "always"})
    yield case(op, "p0_cudnn_off", data(3, 4), {"p": "0", "cudnn_off": "True"})
    yield case(op, "add_p0", data(3, 4), {"p": "0"}, grad_req="add")
    yield case(op, "shape_axes", data(3, 4, 2), {"p": "0.25", "axes": "(1, 2)"}, compare="shape")
    yield case(op, "shape_always", data(3, 4), {"p": "0.25", "mode": "always"}, compare="shape")
    yield case(op, "p_negative", data(2, 2), {"p": "-0.1"}, expect_error=True)
    yield case(op, "p_above_one", data(2, 2), {"p": "1.5"}, expect_error=True)
    yield case(op, "bad_mode", data(2, 2), {"mode": "never"}, expect_error=True)
