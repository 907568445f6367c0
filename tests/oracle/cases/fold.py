"""Extremes, products, norms, and the indices of extremes."""

import numpy as np

from .common import DTYPES, FLOATS, case

AXES = [
    ("all", {}),
    ("axis_empty", {"axis": "()"}),
    ("axis0", {"axis": "0"}),
    ("axis1", {"axis": "1"}),
    ("axis_last", {"axis": "-1"}),
    ("axis_tuple", {"axis": "(0, 2)"}),
    ("keep", {"axis": "1", "keepdims": "True"}),
    ("keep_all", {"keepdims": "True"}),
    ("exclude", {"axis": "1", "exclude": "True"}),
    ("exclude_keep", {"axis": "(0, -1)", "exclude": "True", "keepdims": "True"}),
]


def cases():
    for op in ("max", "min", "prod", "nansum", "nanprod"):

        def data(*shape, dtype="float32", op=op):
            if op.endswith("prod"):
                return lambda v: {"data": v.nonzero(*shape, dtype=dtype)}
            return lambda v: {"data": v.real(*shape, dtype=dtype, low=-3, high=3)}

        for name, attrs in AXES:
            yield case(op, name, data(2, 3, 4), attrs)
        for dtype in DTYPES:
            yield case(op, dtype, data(3, 5, dtype=dtype), {"axis": "1"})
            if dtype != "int8" or not op.endswith("prod"):  # too large
                yield case(op, dtype + "_all", data(3, 5, dtype=dtype))
        yield case(op, "odd", data(3, 1, 7), {"axis": "2"})
        yield case(op, "one", data(1), {"axis": "0"})
        yield case(op, "add", data(3, 4), {"axis": "0"}, grad_req="add")
        yield case(
            op, "nan", lambda v: {"data": np.array([[1, np.nan], [2, 3], [np.nan, np.nan]], "float32")}, {"axis": "1"}
        )
        yield case(op, "ties", lambda v: {"data": np.array([[1, 1, 2, 2]], "float32")}, {"axis": "1"})
        yield case(op, "axis_too_big", data(2, 3), {"axis": "2"}, expect_error=True)
    for op in ("max_axis", "min_axis"):
        yield case(op, "old_name", lambda v: {"data": v.distinct(3, 4)}, {"axis": "1"})

    op = "norm"

    def numbers(*shape, dtype="float32"):
        return lambda v: {"data": v.nonzero(*shape, dtype=dtype)}

    for dtype in FLOATS:
        for order in ("1", "2"):
            yield case(op, dtype + "_ord" + order, numbers(3, 4, dtype=dtype), {"ord": order, "axis": "1"})
            yield case(op, dtype + "_all_ord" + order, numbers(3, 4, dtype=dtype), {"ord": order})
    for name, attrs in AXES:
        if "exclude" not in attrs:
            yield case(op, name, numbers(2, 3, 4), attrs)
    yield case(op, "add", numbers(3, 4), {"axis": "0"}, grad_req="add")
    yield case(op, "to_itself", numbers(3, 4), {"axis": "0", "out_dtype": "float32"})
    yield case(op, "bad_order", numbers(3, 4), {"ord": "3"}, expect_error=True)

    for op in ("argmax", "argmin"):

        def arrays(*shape, dtype="float32"):
            return lambda v: {"data": v.real(*shape, dtype=dtype, low=-3, high=3)}

        for name, attrs in [
            ("all", {}),
            ("axis_none", {"axis": "None"}),
            ("axis0", {"axis": "0"}),
            ("axis1", {"axis": "1"}),
            ("axis_last", {"axis": "-1"}),
            ("keep", {"axis": "1", "keepdims": "True"}),
            ("keep_all", {"keepdims": "True"}),
        ]:
            yield case(op, name, arrays(2, 3, 4), attrs)
        for dtype in DTYPES:
            yield case(op, dtype, arrays(3, 5, dtype=dtype), {"axis": "1"})
        yield case(op, "ties", lambda v: {"data": np.array([[1, 2, 2, 1]], "float32")}, {"axis": "1"})
        yield case(op, "nan", lambda v: {"data": np.array([[1, np.nan, 2], [3, 1, 2]], "float32")}, {"axis": "1"})
    for dtype in FLOATS:
        yield case("argmax_channel", dtype, lambda v, d=dtype: {"data": v.distinct(3, 4, dtype=d)}, grad_req="null")
    yield case("argmax_channel", "images", lambda v: {"data": v.distinct(2, 3, 2, 2)}, grad_req="null")
