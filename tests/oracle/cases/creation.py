from .common import DTYPES, case


def nothing(v):
    return {}


def cases():
    for op in ("_zeros", "_ones"):
        for dtype in DTYPES:
            yield case(op, dtype, nothing, {"shape": "(2, 3)", "dtype": dtype}, grad_req="null")
        for name, shape in [
            ("default_dtype", "(4,)"),
            ("odd", "(3, 1, 7)"),
            ("list", "[2, 2]"),
            ("one", "(1,)"),
            ("plain", "3"),
        ]:
            yield case(op, name, nothing, {"shape": shape}, grad_req="null")
        yield case(op, "context", nothing, {"shape": "(2,)", "ctx": "cpu(0)"}, grad_req="null")
        yield case(op, "bad_dtype", nothing, {"shape": "(2,)", "dtype": "float8"}, grad_req="null", expect_error=True)
        yield case(op, "unknown_shape", nothing, {}, grad_req="null", expect_error=True)
    for op in ("zeros_like", "ones_like"):
        for dtype in DTYPES:
            yield case(op, dtype, lambda v, dtype=dtype: {"data": v.real(2, 3, dtype=dtype)})
        yield case(op, "odd", lambda v: {"data": v.real(3, 1, 7)})
        yield case(op, "add", lambda v: {"data": v.real(2, 3)}, grad_req="add")
