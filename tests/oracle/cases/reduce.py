"""sum and mean."""

import numpy as np

from .common import DTYPES, case


def cases():
    for op in ("sum", "mean"):

        def data(*shape, dtype="float32"):
            return lambda v: {"data": v.real(*shape, dtype=dtype, low=-3, high=3)}

        for name, attrs in [
            ("all", {}),
            ("axis_none", {"axis": "None"}),
            ("axis_empty", {"axis": "()"}),
            ("axis0", {"axis": "0"}),
            ("axis1", {"axis": "1"}),
            ("axis_last", {"axis": "-1"}),
            ("axis_tuple", {"axis": "(0, 2)"}),
            ("axis_tuple_one", {"axis": "(1,)"}),
            ("axis_list", {"axis": "[1, 2]"}),
            ("axis_all", {"axis": "(0, 1, 2)"}),
            ("axis_unsorted", {"axis": "(2, 0)"}),
            ("axis_negatives", {"axis": "(-1, -3)"}),
            ("keep", {"axis": "1", "keepdims": "True"}),
            ("keep_all", {"keepdims": "1"}),
            ("exclude", {"axis": "1", "exclude": "True"}),
            ("exclude_keep", {"axis": "(0, -1)", "exclude": "true", "keepdims": "true"}),
            ("exclude_all", {"exclude": "True"}),
            ("exclude_empty", {"axis": "()", "exclude": "True"}),
            ("exclude_everything", {"axis": "(0, 1, 2)", "exclude": "True"}),
        ]:
            yield case(op, name, data(2, 3, 4), attrs)
        for dtype in DTYPES:
            yield case(op, dtype, data(3, 5, dtype=dtype), {"axis": "1"})
            yield case(op, dtype + "_all", data(3, 5, dtype=dtype))
        yield case(op, "odd", data(3, 1, 7), {"axis": "2"})
        yield case(op, "one", data(1), {"axis": "0"})
        yield case(op, "five_dims", data(2, 2, 3, 2, 2), {"axis": "(1, 3)"})
        yield case(op, "add", data(3, 4), {"axis": "0"}, grad_req="add")
        yield case(
            op,
            "nan",
            lambda v: {"data": np.array([[1, np.nan], [np.inf, 2], [np.inf, -np.inf]], "float32")},
            {"axis": "1"},
        )
        yield case(
            op, "wrap_int8", lambda v: {"data": np.array([[100, 100, 100], [-100, -100, -3]], "int8")}, {"axis": "1"}
        )
        yield case(op, "whole_int32", lambda v: {"data": np.array([[1, 2], [-1, -2], [3, 4]], "int32")}, {"axis": "1"})
        yield case(op, "axis_too_big", data(2, 3), {"axis": "2"}, expect_error=True)
        yield case(op, "axis_twice", data(2, 3), {"axis": "(1, 1)"}, expect_error=True)
