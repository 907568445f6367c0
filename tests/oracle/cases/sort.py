# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""sort, argsort and topk."""

import numpy as np

from .common import DTYPES, case


def cases():
    def data(*shape, dtype="float32"):
        return lambda v: {"data": v.distinct(*shape, dtype=dtype)}

    for op in ("sort", "argsort"):
        for dtype in DTYPES:
            if dtype not in ("bool", "uint8"):
                yield case(op, dtype, data(3, 4, dtype=dtype), {"axis": "1"})
        for name, attrs in [
            ("axis0", {"axis": "0"}),
            ("axis1", {"axis": "1"}),
            ("descend", {"is_ascend": "False", "axis": "-1"}),
            ("descend_axis0", {"is_ascend": "0", "axis": "0"}),
        ]:
            yield case(op, name, data(2, 3, 4), attrs)
        yield case(op, "default", data(2, 5), grad_req="null")
        yield case(op, "all", data(2, 5), {"axis": "None"}, grad_req="null")
        yield case(op, "ties", lambda v: {"data": np.array([[1, 2, 1, 2, 0]], "float32")}, {"axis": "1"})
        yield case(op, "bad_axis", data(2, 5), {"axis": "2"}, expect_error=True)
    yield case("sort", "add", data(2, 5), {"axis": "1"}, grad_req="add")
    for dtype in ("int32", "float64", "int64"):
        yield case("argsort", "to_" + dtype, data(2, 5), {"dtype": dtype, "axis": "1"})

    op = "topk"
    for kind in ("indices", "value", "mask", "both"):
        for name, attrs in [
            ("one", {}),
            ("two", {"k": "2"}),
            ("axis0", {"k": "2", "axis": "0"}),
            ("axis1", {"k": "2", "axis": "1"}),
            ("ascend", {"k": "2", "is_ascend": "True"}),
            ("every", {"k": "0"}),
        ]:
            yield case(op, kind + "_" + name, data(2, 3, 4), {"axis": "-1", "ret_typ": kind, **attrs})
        yield case(op, kind + "_all", data(2, 5), {"ret_typ": kind, "axis": "None", "k": "3"}, grad_req="null")
        yield case(op, kind + "_int32", data(2, 5, dtype="int32"), {"ret_typ": kind, "k": "3"})
    yield case(op, "to_int32", data(2, 5), {"dtype": "int32", "k": "2"})
    yield case(op, "both_to_int32", data(2, 5), {"dtype": "int32", "k": "2", "ret_typ": "both", "axis": "1"})
    yield case(op, "add", data(2, 5), {"ret_typ": "value", "k": "2", "axis": "1"}, grad_req="add")
    yield case(op, "below_zero", data(2, 5), {"ret_typ": "value", "k": "-1"})
    yield case(op, "too_many", data(2, 5), {"k": "6"}, expect_error=True)
    yield case(op, "nul_ret_typ", data(2, 5), {"ret_typ": "\0"}, expect_error=True)
