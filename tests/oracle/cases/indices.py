"""Indices as numbers, diagonals, cumulative sums, moments, products column by column."""

import numpy as np

from .common import DTYPES, FLOATS, case

INDEX_TYPES = [dtype for dtype in DTYPES if dtype != "bool"]


def shape_cases():
    for op in ("shape_array", "size_array"):
        for dtype in INDEX_TYPES:
            yield case(op, dtype, lambda v, dtype=dtype: {"data": v.real(2, 3, 4, dtype=dtype)}, grad_req="null")
        yield case(op, "line", lambda v: {"data": v.real(5)})


def index_cases():
    op = "_ravel_multi_index"

    def indices(dtype="float32"):
        return lambda v: {"data": np.array([[1, 2, 0], [3, 0, 1]], dtype)}

    for dtype in INDEX_TYPES:
        yield case(op, dtype, indices(dtype), {"shape": "(3, 4)"}, grad_req="null")
    yield case(op, "no_gradient", indices(), {"shape": "(3, 4)"})
    yield case(op, "open", indices(), {"shape": "(-1, 4)"}, grad_req="null")
    yield case(op, "outside", lambda v: {"data": np.array([[5, -1], [9, 2]], "int32")}, {"shape": "(3, 4)"}, "null")
    yield case(op, "three", lambda v: {"data": v.labels(3, 4, classes=2)}, {"shape": "(2, 3, 4)"}, grad_req="null")
    for name, shape in [("no_extents", "(0, 0)"), ("extents_below_0", "(-2, -3)")]:
        yield case(op, name, indices(), {"shape": shape}, grad_req="null")
    yield case(op, "bad_axes", indices(), {"shape": "(3, 4, 5)"}, grad_req="null", expect_error=True)
    yield case(op, "bad_shape", indices(), {"shape": "()"}, grad_req="null", expect_error=True)

    op = "_unravel_index"

    def numbers(dtype="float32"):
        return lambda v: {"data": np.array([7, 8, 1, 13], dtype)}

    for dtype in INDEX_TYPES:
        yield case(op, dtype, numbers(dtype), {"shape": "(3, 4)"}, grad_req="null")
    yield case(op, "no_gradient", numbers(), {"shape": "(3, 4)"})
    yield case(op, "open", numbers(), {"shape": "(-1, 4)"}, grad_req="null")
    yield case(op, "three", numbers(), {"shape": "(2, 3, 4)"}, grad_req="null")
    yield case(op, "below_zero", lambda v: {"data": np.array([-1, -5], "int32")}, {"shape": "(3, 4)"}, "null")


def diagonal_cases():
    op = "diag"

    def data(*shape, dtype="float32"):
        return lambda v: {"data": v.real(*shape, dtype=dtype)}

    for dtype in INDEX_TYPES:
        yield case(op, dtype, data(3, 4, dtype=dtype), grad_req="write" if dtype in FLOATS else "null")
        yield case(op, "made_" + dtype, data(3, dtype=dtype), grad_req="write" if dtype in FLOATS else "null")
    for k in (-2, -1, 1, 3):
        yield case(op, "k_%d" % k, data(3, 4), {"k": k})
        yield case(op, "made_k_%d" % k, data(3), {"k": k})
    yield case(op, "three", data(2, 3, 4))
    yield case(op, "axes", data(2, 3, 4), {"axis1": "2", "axis2": "0", "k": "1"})
    yield case(op, "axes_from_the_end", data(2, 3, 3, 2), {"axis1": "-2", "axis2": "-3", "k": "-1"})
    yield case(op, "add", data(3, 4), {"k": "1"}, grad_req="add")
    yield case(op, "made_add", data(3), {"k": "-1"}, grad_req="add")
    yield case(op, "bad_axes", data(3, 4), {"axis1": "1"}, expect_error=True)
    yield case(op, "bad_k", data(3, 4), {"k": "5"}, expect_error=True)


def cumsum_cases():
    op = "_np_cumsum"

    def data(*shape, dtype="float32"):
        return lambda v: {"a": v.real(*shape, dtype=dtype)}

    for dtype in INDEX_TYPES:
        yield case(op, dtype, data(3, 4, dtype=dtype), grad_req="write" if dtype in FLOATS else "null")
    for axis in (0, 1, 2):
        yield case(op, "axis%d" % axis, data(2, 3, 4), {"axis": axis})
    yield case(op, "line", data(5), {"axis": "0"})
    for dtype in ("float64", "float16", "int32"):
        yield case(
            op, "as_" + dtype, data(2, 3), {"axis": "1", "dtype": dtype}, "null" if dtype == "int32" else "write"
        )
    yield case(op, "add", data(2, 3), {"axis": "0"}, grad_req="add")
    yield case(op, "bad_axis", data(2, 3), {"axis": "2"}, expect_error=True)


def moment_cases():
    op = "moments"

    def data(*shape, dtype="float32"):
        return lambda v: {"data": v.real(*shape, dtype=dtype)}

    for dtype in FLOATS:
        yield case(op, dtype, data(3, 4, dtype=dtype), {"axes": "(0,)"})
    for name, axes in [("last", "(-1,)"), ("middle", "(1,)"), ("two", "(0, 2)"), ("all", "(0, 1, 2)")]:
        yield case(op, name, data(2, 3, 4), {"axes": axes})
        yield case(op, name + "_kept", data(2, 3, 4), {"axes": axes, "keepdims": "True"})
    yield case(op, "add", data(3, 4), {"axes": "(1,)"}, grad_req="add")
    yield case(op, "no_axes", data(3, 4), {"axes": "()"}, expect_error=True)
    yield case(op, "bad_axis", data(3, 4), {"axes": "(5,)"}, expect_error=True)


def product_cases():
    op = "khatri_rao"

    def matrices(*shapes, dtype="float32"):
        return lambda v: {"arg%d" % i: v.real(*s, dtype=dtype) for i, s in enumerate(shapes)}

    for dtype in FLOATS:
        yield case(op, dtype, matrices((2, 3), (4, 3), dtype=dtype), {"num_args": "2"}, grad_req="null")
    yield case(op, "one", matrices((2, 3)), {"num_args": "1"}, grad_req="null")
    yield case(op, "three", matrices((2, 2), (3, 2), (2, 2)), {"num_args": "3"}, grad_req="null")
    yield case(op, "bad_columns", matrices((2, 2), (3, 3)), {"num_args": "2"}, grad_req="null", expect_error=True)


def cases():
    for family in (shape_cases, index_cases, diagonal_cases, cumsum_cases, moment_cases, product_cases):
        yield from family()
