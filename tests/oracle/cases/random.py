# ruff: noqa: B023 (a case is made at once, before the loop goes on)
"""Random operators: only shape and type are compared."""

from .common import DTYPES, FLOATS, case


def nothing(v):
    return {}


def cases():
    for op, first, second in [("_random_uniform", "low", "high"), ("_random_normal", "loc", "scale")]:

        def random(name, attrs, **more):
            return case(op, name, nothing, attrs, grad_req="null", compare="shape", **more)

        yield random("default", {"shape": "(2, 3)"})
        yield random("limits", {"shape": "(2, 3)", first: "-1.5", second: "2.5"})
        for dtype in FLOATS + ["None"]:
            yield random("dtype_" + dtype, {"shape": "(2, 3)", "dtype": dtype})
        yield random("odd", {"shape": "(3, 1, 7)"})
        yield random("plain", {"shape": "5"})
        yield random("no_shape", {})
        yield random("context", {"shape": "(2,)", "ctx": "cpu(0)"})
        yield random("int32", {"shape": "(2,)", "dtype": "int32"}, expect_error=True)
    yield case(
        "_random_normal",
        "scale_negative",
        nothing,
        {"shape": "(2,)", "scale": "-1"},
        grad_req="null",
        compare="shape",
        expect_error=True,
    )
    yield case(
        "_random_uniform",
        "high_below_low",
        nothing,
        {"shape": "(2,)", "low": "1", "high": "0"},
        grad_req="null",
        compare="shape",
        expect_error=True,
    )
    for op, first, second in [("_sample_uniform", "low", "high"), ("_sample_normal", "mu", "sigma")]:

        def pair(*shape, dtype="float32"):
            def make(v):
                low = v.real(*shape, dtype=dtype, low=-2, high=0)
                high = v.nonzero(*shape, dtype=dtype, low=0.5, high=3)
                return {first: low, second: high}

            return make

        def sample(name, make, attrs=None, **more):
            return case(op, name, make, attrs, grad_req="null", compare="shape", **more)

        for dtype in DTYPES:
            yield sample("from_" + dtype, pair(2, dtype=dtype))
        yield sample("no_shape", pair(3))
        yield sample("shape", pair(3), {"shape": "(2, 4)"})
        yield sample("plain", pair(3), {"shape": "4"})
        yield sample("matrix", pair(2, 3), {"shape": "(2,)"})
        yield sample("odd", pair(3, 1, 7))
        for dtype in FLOATS + ["None"]:
            yield sample("to_" + dtype, pair(2), {"shape": "(3,)", "dtype": dtype})
        yield sample("mixed_shape", lambda v: {first: v.real(2), second: v.nonzero(3, low=0.5)}, expect_error=True)
