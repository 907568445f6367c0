# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Linear algebra: products, triangular systems, factorizations, diagonals and triangles of matrices."""

import numpy as np

from .common import case

TYPES = ("float32", "float64")


def symmetric(v, *batch, extent, dtype="float64", shift=0.0):
    a = v.real(*batch, extent, extent, dtype="float64")
    return ((a + np.swapaxes(a, -1, -2)) / 2 + shift * np.eye(extent)).astype(dtype)


def positive(v, *batch, extent, dtype="float64"):
    a = v.real(*batch, extent, extent, dtype="float64")
    return (a @ np.swapaxes(a, -1, -2) + np.eye(extent)).astype(dtype)


def factor(v, *batch, extent, dtype="float64"):
    """Lower triangular with a positive diagonal, and other numbers above it."""
    a = v.real(*batch, extent, extent, dtype="float64")
    return (a + np.eye(extent) * (3 - np.einsum("...ii->...i", a))[..., None]).astype(dtype)


def product_cases():
    flags = ("False", "True")
    for dtype in TYPES:
        for ta in flags:
            for tb in flags:
                attrs = {"transpose_a": ta, "transpose_b": tb, "alpha": "1.5"}

                def two(v):
                    a = v.real(2, 3, 4, dtype=dtype)
                    b = v.real(2, 4, 5, dtype=dtype)
                    turn = {"True": lambda x: np.ascontiguousarray(np.swapaxes(x, 1, 2)), "False": lambda x: x}
                    return {"A": turn[ta](a), "B": turn[tb](b)}

                name = "%s_%s_%s" % (dtype, ta, tb)
                yield case("_linalg_gemm2", name, two, attrs)
                yield case(
                    "_linalg_gemm",
                    name,
                    lambda v: dict(two(v), C=v.real(2, 3, 5, dtype=dtype)),
                    dict(attrs, beta="-0.5"),
                )
    plain = {"A": (3, 4), "B": (4, 5), "C": (3, 5)}

    def of(shapes, dtype="float64"):
        return lambda v: {name: v.real(*shape, dtype=dtype) for name, shape in shapes.items()}

    yield case("_linalg_gemm", "plain", of(plain))
    yield case("_linalg_gemm", "add", of(plain), grad_req="add")
    yield case(
        "_linalg_gemm", "rows_third", of({"A": (2, 3, 2, 4), "B": (2, 4, 2, 5), "C": (2, 3, 2, 5)}), {"axis": -3}
    )
    yield case("_linalg_gemm", "rows_first", of({"A": (3, 2, 2, 4), "B": (4, 2, 2, 5), "C": (3, 2, 2, 5)}), {"axis": 0})
    yield case(
        "_linalg_gemm2",
        "rows_first_transposed",
        of({"A": (4, 2, 3), "B": (5, 2, 4)}),
        {"axis": 0, "transpose_a": "True", "transpose_b": "True"},
    )
    yield case("_linalg_gemm2", "deep", of({"A": (2, 1, 2, 3, 2), "B": (2, 1, 2, 2, 3)}))
    yield case("_linalg_gemm2", "one", of({"A": (1, 1), "B": (1, 1)}))
    for name, shapes, attrs in [
        ("inner", {"A": (3, 4), "B": (3, 5)}, {}),
        ("batch", {"A": (1, 3, 4), "B": (2, 4, 5)}, {}),
        ("ranks", {"A": (3, 4), "B": (2, 4, 5)}, {}),
        ("vector", {"A": (4,), "B": (4, 5)}, {}),
        ("last_axis", {"A": (2, 3, 4), "B": (2, 4, 5)}, {"axis": -1}),
    ]:
        yield case("_linalg_gemm2", "bad_" + name, of(shapes), attrs, expect_error=True)
    for dtype in TYPES:
        for transpose in flags:
            attrs = {"transpose": transpose, "alpha": "2"}
            yield case("_linalg_syrk", "%s_%s" % (dtype, transpose), of({"A": (2, 3, 4)}, dtype), attrs)
    yield case("_linalg_syrk", "plain", of({"A": (2, 3)}))


def triangular_cases():
    for op in ("_linalg_trmm", "_linalg_trsm"):
        for transpose in ("False", "True"):
            for rightside in ("False", "True"):
                for lower in ("True", "False"):
                    attrs = {"transpose": transpose, "rightside": rightside, "lower": lower, "alpha": "0.5"}
                    yield case(
                        op,
                        "_".join((transpose, rightside, lower)),
                        lambda v: {
                            "A": factor(v, 2, extent=3),
                            "B": v.real(2, *((4, 3) if rightside == "True" else (3, 4)), dtype="float64"),
                        },
                        attrs,
                    )
        for dtype in TYPES:
            yield case(op, dtype, lambda v: {"A": factor(v, extent=4, dtype=dtype), "B": v.real(4, 2, dtype=dtype)})
        yield case(op, "add", lambda v: {"A": factor(v, extent=3), "B": v.real(3, 2, dtype="float64")}, grad_req="add")
        yield case(
            op, "bad", lambda v: {"A": factor(v, extent=3), "B": v.real(2, 4, dtype="float64")}, expect_error=True
        )
    yield case(
        "_linalg_trsm",
        "singular",
        lambda v: {"A": np.zeros((2, 2)), "B": v.nonzero(2, 2, dtype="float64")},
        grad_req="null",
    )


def factor_cases():
    for dtype in TYPES:
        for name, batch in (("plain", ()), ("batch", (2, 3))):
            made = dict(dtype=dtype, extent=4)
            yield case("_linalg_potrf", name + dtype, lambda v: {"A": positive(v, *batch, **made)})
            yield case("_linalg_potri", name + dtype, lambda v: {"A": factor(v, *batch, **made)})
            yield case("_linalg_gelqf", name + dtype, lambda v: {"A": v.real(*batch, 3, 5, dtype=dtype)})
            yield case("_linalg_syevd", name + dtype, lambda v: {"A": symmetric(v, *batch, **made)})
            for op in ("inverse", "det", "slogdet"):
                yield case("_linalg_" + op, name + dtype, lambda v: {"A": factor(v, *batch, **made)})
    yield case("_linalg_gelqf", "square", lambda v: {"A": factor(v, 2, extent=3)})
    yield case(
        "_linalg_potrf", "lower_alone", lambda v: {"A": positive(v, extent=3) + np.triu(np.full((3, 3), 5.0), 1)}
    )
    yield case(
        "_linalg_syevd", "lower_alone", lambda v: {"A": symmetric(v, extent=3) + np.triu(np.full((3, 3), 5.0), 1)}
    )
    # Its gradient divides by 1e-100 where eigenvalues are equal; ours has zeros there.
    yield case("_linalg_syevd", "equal", lambda v: {"A": np.eye(3)}, grad_req="null")
    for op in ("potrf", "potri", "inverse", "det", "slogdet", "syevd"):
        yield case("_linalg_" + op, "one", lambda v: {"A": np.array([[2.0]])})
        yield case("_linalg_" + op, "add", lambda v: {"A": positive(v, 2, extent=3)}, grad_req="add")
        yield case("_linalg_" + op, "bad", lambda v: {"A": v.real(2, 3, dtype="float64")}, expect_error=True)
        yield case("_linalg_" + op, "half", lambda v: {"A": np.eye(2, dtype="float16")}, expect_error=True)
    yield case("_linalg_gelqf", "bad", lambda v: {"A": v.real(3, 2, dtype="float64")}, expect_error=True)
    for op in ("det", "slogdet"):
        yield case("_linalg_" + op, "singular", lambda v: {"A": np.array([[1.0, 2], [2, 4]])})
        yield case("_linalg_" + op, "negative", lambda v: {"A": np.array([[1.0, 2], [3, 4]])})


def element_cases():
    for dtype in TYPES:
        yield case("_linalg_sumlogdiag", dtype, lambda v: {"A": factor(v, 2, 2, extent=3, dtype=dtype)})
        yield case("_linalg_extractdiag", dtype, lambda v: {"A": v.real(2, 3, 3, dtype=dtype)})
        yield case("_linalg_makediag", dtype, lambda v: {"A": v.real(2, 3, dtype=dtype)})
        yield case("_linalg_extracttrian", dtype, lambda v: {"A": v.real(2, 3, 3, dtype=dtype)})
        yield case("_linalg_maketrian", dtype, lambda v: {"A": v.real(2, 6, dtype=dtype)})
    yield case("_linalg_sumlogdiag", "plain", lambda v: {"A": factor(v, extent=3)})
    for offset in (-2, -1, 0, 1, 2):
        attrs = {"offset": offset}
        name = "at%d" % offset
        yield case("_linalg_extractdiag", name, lambda v: {"A": v.real(4, 4, dtype="float64")}, attrs)
        yield case("_linalg_makediag", name, lambda v: {"A": v.real(3, dtype="float64")}, attrs)
        for lower in ("True", "False"):
            both = dict(attrs, lower=lower)
            yield case("_linalg_extracttrian", name + lower, lambda v: {"A": v.real(2, 4, 4, dtype="float64")}, both)
            yield case("_linalg_maketrian", name + lower, lambda v: {"A": v.real(2, 6, dtype="float64")}, both)
    yield case("_linalg_extractdiag", "far", lambda v: {"A": v.real(3, 3)}, {"offset": 3}, expect_error=True)
    yield case("_linalg_extracttrian", "far", lambda v: {"A": v.real(3, 3)}, {"offset": -3}, expect_error=True)
    yield case("_linalg_maketrian", "odd", lambda v: {"A": v.real(5)}, expect_error=True)


def cases():
    yield from product_cases()
    yield from triangular_cases()
    yield from factor_cases()
    yield from element_cases()
