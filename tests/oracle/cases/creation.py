from .common import DTYPES, case


def nothing(v):
    return {}


def full_cases():
    for dtype in DTYPES:
        yield case("_full", dtype, nothing, {"shape": "(2, 3)", "value": "2.5", "dtype": dtype}, grad_req="null")
    for name, attrs in [
        ("default_dtype", {"shape": "(4,)", "value": "-7"}),
        ("infinite", {"shape": "(2,)", "value": "inf"}),
        ("not_a_number", {"shape": "(2,)", "value": "nan"}),
        ("too_large", {"shape": "(2,)", "value": "1e10", "dtype": "float16"}),
        ("context", {"shape": "(2,)", "value": "1", "ctx": "cpu(0)"}),
    ]:
        yield case("_full", name, nothing, attrs, grad_req="null")
    yield case("_full", "no_value", nothing, {"shape": "(2,)"}, grad_req="null", expect_error=True)
    yield case("_full", "unknown_shape", nothing, {"value": "2"}, grad_req="null", expect_error=True)


def range_cases():
    def made(op, name, error=False, **attrs):
        return case(op, name, nothing, attrs, grad_req="null", expect_error=error)

    numbers = [dtype for dtype in DTYPES if dtype != "bool"]
    for dtype in numbers:
        yield made("_arange", dtype, start=1, stop=7, step=2, dtype=dtype)
        yield made("_linspace", dtype, start=0, stop=10, num=4, dtype=dtype)
        yield made("_eye", dtype, N=3, M=4, k=1, dtype=dtype)
    for name, attrs in [
        ("one_number", dict(start=5)),
        ("stop_none", dict(start=5, stop=None)),
        ("down", dict(start=5, stop=0, step=-1.5)),
        ("repeated", dict(start=1, stop=3, repeat=2)),
        ("fractions", dict(start=0, stop=1, step=0.1)),
        ("fractions_float64", dict(start=-1, stop=1, step=0.3, dtype="float64")),
        ("integers_by_fractions", dict(start=0, stop=5, step=1.5, dtype="int32")),
        ("integers_between", dict(start=0.5, stop=5.5, dtype="int32")),
        ("integers_that_stand", dict(start=-1, stop=2, step=0.7, dtype="int8")),
        ("bytes_wrap", dict(start=-2, stop=3, dtype="int8")),
        ("context", dict(start=0, stop=2, ctx="cpu(0)")),
        ("stop_before_inference", dict(start=0, stop=2, infer_range=True)),
    ]:
        yield made("_arange", name, **attrs)
    yield made("_arange", "no_start", error=True, stop=3)
    yield made("_arange", "no_step", error=True, start=0, stop=3, step=0)
    yield made("_arange", "no_repeat", error=True, start=0, stop=3, repeat=0)
    yield made("_arange", "bool", error=True, start=0, stop=3, dtype="bool")
    yield made("_arange", "nothing_to_infer_from", error=True, start=0, infer_range=True)
    for name, attrs in [
        ("open", dict(start=0, stop=1, num=5, endpoint=False)),
        ("down", dict(start=5, stop=-5, num=7)),
        ("one", dict(start=2, stop=3, num=1)),
        ("one_open", dict(start=2, stop=3, num=1, endpoint=False)),
        ("still", dict(start=2, stop=2, num=3)),
        ("context", dict(start=2, stop=3, num=2, ctx="cpu(0)")),
    ]:
        yield made("_linspace", name, **attrs)
    yield made("_linspace", "no_num", error=True, start=0, stop=3)
    yield made("_linspace", "negative", error=True, start=0, stop=3, num=-1)
    for name, attrs in [
        ("square", dict(N=3)),
        ("below", dict(N=4, M=2, k=-1)),
        ("outside", dict(N=2, k=5)),
        ("negative_columns", dict(N=2, M=-1)),
        ("context", dict(N=2, ctx="cpu(0)")),
    ]:
        yield made("_eye", name, **attrs)
    yield made("_eye", "no_rows", error=True, M=2)
    yield made("_eye", "negative", error=True, N=-1)


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
    yield from full_cases()
    yield from range_cases()
    for op in ("zeros_like", "ones_like"):
        for dtype in DTYPES:
            yield case(op, dtype, lambda v, dtype=dtype: {"data": v.real(2, 3, dtype=dtype)})
        yield case(op, "odd", lambda v: {"data": v.real(3, 1, 7)})
        yield case(op, "add", lambda v: {"data": v.real(2, 3)}, grad_req="add")
