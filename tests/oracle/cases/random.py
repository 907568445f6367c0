# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Random operators: only shape and type are compared, but where there is one answer alone."""

import numpy as np

from .common import DTYPES, FLOATS, case


def nothing(v):
    return {}


# The operator, values off its defaults, and parameters it refuses.
NUMBERS = [
    ("_random_exponential", {"lam": "4"}, [{"lam": "0"}, {"lam": "-1"}]),
    ("_random_gamma", {"alpha": "9", "beta": "0.5"}, [{"alpha": "0"}, {"beta": "-1"}]),
    ("_random_poisson", {"lam": "3.5"}, [{"lam": "-1"}]),
    ("_random_negative_binomial", {"k": "3", "p": "0.4"}, [{"k": "-1"}, {"k": "1.5"}]),
    ("_random_generalized_negative_binomial", {"mu": "2", "alpha": "0.3"}, [{"mu": "-1"}, {"alpha": "-1"}]),
]
SAMPLES = [
    ("_sample_exponential", ["lam"]),
    ("_sample_gamma", ["alpha", "beta"]),
    ("_sample_poisson", ["lam"]),
    ("_sample_negative_binomial", ["k", "p"]),
    ("_sample_generalized_negative_binomial", ["mu", "alpha"]),
]


def drawn(op, name, attrs, **more):
    return case(op, name, nothing, attrs, grad_req="null", compare="shape", **more)


def number_cases():
    for op, values, refused in NUMBERS:
        yield drawn(op, "default", {"shape": "(2, 3)"})
        yield drawn(op, "values", {"shape": "(3, 1, 7)", **values})
        yield drawn(op, "plain", {"shape": "5"})
        yield drawn(op, "context", {"shape": "(2,)", "ctx": "cpu(0)"})
        yield drawn(op[1:], "other_name", {"shape": "(2,)"})
        for dtype in FLOATS + ["None"]:
            yield drawn(op, "dtype_" + dtype, {"shape": "(2, 3)", "dtype": dtype})
        yield drawn(op, "int32", {"shape": "(2,)", "dtype": "int32"}, expect_error=True)
        for number, attrs in enumerate(refused):
            yield drawn(op, "refused%d" % number, {"shape": "(2,)", **attrs}, expect_error=True)
    op = "_random_randint"
    limits = {"low": "-3", "high": "5"}
    for dtype in ("int32", "int64", "None"):
        yield drawn(op, "dtype_" + dtype, {"shape": "(2, 3)", "dtype": dtype, **limits})
    yield drawn(op, "large", {"shape": "(3,)", "low": "0", "high": str(2**40), "dtype": "int64"})
    yield drawn(op, "context", {"shape": "(2,)", "ctx": "cpu(0)", **limits})
    yield drawn("random_randint", "other_name", {"shape": "(2,)", **limits})
    yield drawn(op, "float32", {"shape": "(2,)", "dtype": "float32", **limits}, expect_error=True)
    yield drawn(op, "no_high", {"shape": "(2,)", "low": "1"}, expect_error=True)


def like_cases():
    for op, values, refused in [
        ("_random_uniform", {"low": "-1", "high": "3"}, []),
        ("_random_normal", {"loc": "1", "scale": "2"}, [{"scale": "-1"}]),
        *NUMBERS,
    ]:
        op += "_like"

        def like(name, attrs=None, dtype="float32", **more):
            made = lambda v: {"data": v.real(2, 3, dtype=dtype)}  # noqa: E731
            return case(op, name, made, attrs, grad_req="null", compare="shape", **more)

        yield like("default")
        yield like("values", values)
        for dtype in FLOATS[1:]:
            yield like(dtype, dtype=dtype)
        for number, attrs in enumerate(refused):
            yield like("refused%d" % number, attrs, expect_error=True)
    yield drawn("_sample_unique_zipfian", "rows", {"range_max": "100", "shape": "(2, 5)"})
    yield drawn("_sample_unique_zipfian", "all", {"range_max": "4", "shape": "(3, 4)"})


def sample_cases():
    for op, inputs in SAMPLES:

        def values(*shape, dtype="float32"):
            return lambda v: {name: v.nonzero(*shape, dtype=dtype, low=0.5, high=1) for name in inputs}

        def sample(name, make, attrs=None, **more):
            return case(op, name, make, attrs, grad_req="null", compare="shape", **more)

        for dtype in DTYPES:
            yield sample("from_" + dtype, values(2, dtype=dtype))
        yield sample("shape", values(3), {"shape": "(2, 4)"})
        yield sample("matrix", values(2, 3), {"shape": "2"})
        for dtype in FLOATS + ["None"]:
            yield sample("to_" + dtype, values(2), {"shape": "(3,)", "dtype": dtype})
        yield sample("to_int32", values(2), {"dtype": "int32"}, expect_error=True)
        yield case(op[1:], "other_name", values(2), grad_req="null", compare="shape")


def choice_cases():
    op = "_sample_multinomial"

    # Only one class has a probability, so that the answer is certain.
    def certain(*shape, dtype="float32"):
        def make(v):
            data = np.zeros(shape, dtype)
            indices = v.rng.randint(0, shape[-1], shape[:-1])
            np.put_along_axis(data, indices[..., None], 1, -1)
            return {"data": data}

        return make

    for dtype in FLOATS:
        yield case(op, "from_" + dtype, certain(3, 4, dtype=dtype), {"get_prob": "True"})
    for dtype in FLOATS + ["int32", "uint8"]:
        yield case(op, "to_" + dtype, certain(3, 4), {"dtype": dtype}, grad_req="null")
    for name, shape, attrs in [
        ("vector", (4,), {}),
        ("vector_shape", (4,), {"shape": "(2, 3)"}),
        ("shape", (3, 4), {"shape": "2"}),
        ("deep", (2, 3, 4), {"shape": "(2,)"}),
        ("one_class", (3, 1), {}),
    ]:
        yield case(op, name, certain(*shape), attrs, grad_req="null")
        yield case(op, name + "_prob", certain(*shape), dict(attrs, get_prob="True"))
    yield case(op, "add", certain(3, 4), {"shape": "3", "get_prob": "True"}, grad_req="add")
    yield case("sample_multinomial", "other_name", certain(3, 4), grad_req="null")
    yield case(op, "from_int32", certain(3, 4, dtype="int32"), grad_req="null", expect_error=True)

    # Rows that are all alike look alike in any order.
    op = "_shuffle"
    for dtype in DTYPES:
        yield case(op, dtype, lambda v: {"data": np.repeat(v.real(1, 3, dtype=dtype), 4, 0)}, grad_req="null")
    yield case("shuffle", "other_name", lambda v: {"data": v.real(1)}, grad_req="null")
    yield case(op, "shape", lambda v: {"data": v.real(3, 2, 2)}, grad_req="null", compare="shape")
    yield case(op, "gradient", lambda v: {"data": v.real(3, 2)}, expect_error=True)


def cases():
    for family in (number_cases, like_cases, sample_cases, choice_cases):
        yield from family()
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
