# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Elements chosen by numbers or conditions."""

import numpy as np

from .common import DTYPES, case


def numbers(values, dtype="float32"):
    return np.array(values, dtype)


def take_cases():
    op = "take"

    def pair(shape, indices, dtype="float32", index_dtype="float32"):
        return lambda v: {"a": v.real(*shape, dtype=dtype, low=-3, high=3), "indices": numbers(indices, index_dtype)}

    for dtype in DTYPES:
        yield case(op, dtype, pair((4, 3), [0, 3, 3], dtype))
        if dtype != "bool":
            yield case(op, "by_" + dtype, pair((4, 3), [0, 3, 3, 1], index_dtype=dtype))
    for name, shape, indices, attrs in [
        ("matrix", (4, 3), [[0, 2], [1, 1], [3, 0]], {}),
        ("axis1", (2, 4, 3), [3, 0], {"axis": "1"}),
        ("axis_last", (2, 3), [[2], [0]], {"axis": "-1"}),
        ("clip", (3, 2), [-5, -1, 0, 7, 2.75], {}),
        ("clip_axis1", (3, 2), [-5, 7], {"axis": "1", "mode": "clip"}),
        ("clip_far", (3, 2), [-1e9, 1e9], {"mode": "clip"}),
        ("wrap", (3, 2), [-5, -1, 0, 7, 3], {"mode": "wrap"}),
        ("wrap_axis1", (3, 4), [-1, 9], {"mode": "wrap", "axis": "1"}),
        ("raise", (3, 2), [2, 0, 1], {"mode": "raise"}),
        ("vector", (5,), [4, 4, 0], {}),
    ]:
        yield case(op, name, pair(shape, indices), attrs)
    yield case(op, "add", pair((4, 3), [0, 3, 3]), grad_req="add")
    yield case(op, "raises", pair((3, 2), [3]), {"mode": "raise"}, expect_error=True)
    yield case(op, "bad_axis", pair((3, 2), [0]), {"axis": "2"}, expect_error=True)

    op = "Embedding"

    def rows(data, weight=(4, 3), dtype="float32", data_dtype="float32"):
        return lambda v: {"data": numbers(data, data_dtype), "weight": v.real(*weight, dtype=dtype)}

    size = {"input_dim": "4", "output_dim": "3"}
    for dtype in ("float32", "float64", "float16"):
        yield case(op, dtype, rows([0, 3, 3, 1], dtype=dtype), dict(size, dtype=dtype), no_grad=["data"])
    for dtype in ("int32", "int64", "uint8", "float64"):
        yield case(op, "by_" + dtype, rows([0, 3, 3, 1], data_dtype=dtype), size, no_grad=["data"])
    yield case(op, "matrix", rows([[0, 2], [1, 1]]), size, no_grad=["data"])
    yield case(op, "outside", rows([-2, 9, 3.5]), size, no_grad=["data"])
    yield case(op, "add", rows([0, 3, 3, 1]), size, grad_req="add", no_grad=["data"])
    yield case(op, "one_row", rows([0, 0], (1, 5)), {"input_dim": "1", "output_dim": "5"}, no_grad=["data"])
    sparse = case(op, "sparse", rows([0, 3]), dict(size, sparse_grad="True"), grad_req="null")
    yield sparse
    yield case(op, "bad_weight", rows([0, 3]), {"input_dim": "5", "output_dim": "3"}, expect_error=True)


def pick_cases():
    op = "pick"

    def pair(shape, index, dtype="float32", index_dtype="float32"):
        return lambda v: {"data": v.real(*shape, dtype=dtype, low=-3, high=3), "index": numbers(index, index_dtype)}

    for dtype in DTYPES:
        yield case(op, dtype, pair((3, 4), [0, 3, 1], dtype))
    for dtype in ("int32", "int64", "float64", "uint8"):
        yield case(op, "by_" + dtype, pair((3, 4), [0, 3, 1], index_dtype=dtype))
    for name, shape, index, attrs in [
        ("axis0", (3, 4), [0, 2, 1, 1], {"axis": "0"}),
        ("axis1", (2, 3, 2), [[0, 2], [1, 1]], {"axis": "1"}),
        ("keep", (3, 4), [0, 3, 1], {"keepdims": "True"}),
        ("keep_axis1", (2, 3, 2), [[0, 2], [1, 1]], {"axis": "1", "keepdims": "True"}),
        ("kept_index", (3, 4), [[0], [3], [1]], {}),
        ("clip", (3, 4), [-2, 9, 1.75], {}),
        ("wrap", (3, 4), [-2, 9, 1], {"mode": "wrap"}),
    ]:
        yield case(op, name, pair(shape, index), attrs)
    yield case("choose_element_0index", "old_name", pair((3, 4), [0, 3, 1]))
    yield case(op, "add", pair((3, 4), [0, 3, 1]), grad_req="add")
    yield case(op, "bad_index", pair((3, 4), [0, 3]), expect_error=True)

    op = "batch_take"
    for dtype in DTYPES:
        yield case(
            op,
            dtype,
            lambda v: {"a": v.real(3, 4, dtype=dtype), "indices": numbers([0, 3, 1], "int32")},
            grad_req="null",
        )
    yield case(op, "clip", lambda v: {"a": v.real(3, 4), "indices": numbers([-1, 9, 2], "int32")}, grad_req="null")

    op = "one_hot"

    def indices(values, dtype="float32"):
        return lambda v: {"indices": numbers(values, dtype)}

    for dtype in ("float32", "float64", "int32", "int64", "uint8"):
        yield case(op, "by_" + dtype, indices([0, 2, 1], dtype), {"depth": "3"})
        yield case(op, "to_" + dtype, indices([0, 2, 1]), {"depth": "3", "dtype": dtype})
    yield case(op, "matrix", indices([[0, 2], [1, 1]]), {"depth": "4"})
    yield case(op, "outside", indices([-1, 4, 3, 1.9]), {"depth": "4"})
    yield case(op, "values", indices([0, 2]), {"depth": "3", "on_value": "2.5", "off_value": "-1"})
    yield case(op, "no_depth", indices([0]), expect_error=True)


def where_cases():
    op = "where"

    def three(condition, shape, dtype="float32", condition_dtype="float32"):
        return lambda v: {
            "condition": numbers(condition, condition_dtype),
            "x": v.real(*shape, dtype=dtype),
            "y": v.real(*shape, dtype=dtype),
        }

    matrix = [[0, 1, -1], [2, 0, 0]]
    for dtype in DTYPES:
        yield case(op, dtype, three(matrix, (2, 3), dtype))
    for dtype in ("int32", "int64", "float64", "uint8"):
        yield case(op, "by_" + dtype, three([[0, 1, 1], [2, 0, 0]], (2, 3), condition_dtype=dtype))
    yield case(op, "rows", three([0, 1], (2, 3)))
    yield case(op, "slices", three([0, 1], (2, 3, 2)))
    yield case(op, "vector", three([0, 1, 0.5], (3,)))
    yield case(op, "add", three(matrix, (2, 3)), grad_req="add")
    yield case(op, "bad_condition", three([0, 1, 1], (2, 3)), expect_error=True)


def nd_cases():
    def gather(shape, indices, dtype="float32", index_dtype="int32"):
        return lambda v: {"data": v.real(*shape, dtype=dtype), "indices": numbers(indices, index_dtype)}

    op = "gather_nd"
    indices = [[0, 2, 2], [1, 0, 0]]
    for dtype in DTYPES:
        yield case(op, dtype, gather((3, 2), indices, dtype))
    for dtype in ("float32", "float64", "int64", "uint8"):
        yield case(op, "by_" + dtype, gather((3, 2), indices, index_dtype=dtype))
    yield case(op, "slices", gather((3, 2, 2), [[0, 2, 2]]))
    yield case(op, "deep", gather((2, 3, 2), [[[0, 1]], [[2, 0]], [[1, 1]]]))
    yield case(op, "add", gather((3, 2), indices), grad_req="add")
    yield case(op, "too_deep", gather((3,), indices), expect_error=True)

    op = "scatter_nd"
    for dtype in DTYPES:
        yield case(
            op,
            dtype,
            lambda v: {"data": v.real(3, dtype=dtype), "indices": numbers([[0, 2, 1], [1, 0, 0]], "int32")},
            {"shape": "(3, 2)"},
        )
    yield case(
        op,
        "slices",
        lambda v: {"data": v.real(2, 3), "indices": numbers([[3, 0]], "int64")},
        {"shape": "(4, 3)"},
    )


def cases():
    for family in (take_cases, pick_cases, where_cases, nd_cases):
        yield from family()
