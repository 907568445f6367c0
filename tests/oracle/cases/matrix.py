# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Shape manipulation, slicing, concatenation and dot."""

from ast import literal_eval

import numpy as np

from .common import DTYPES, case


def data(*shape, dtype="float32"):
    return lambda v: {"data": v.real(*shape, dtype=dtype, low=-3, high=3)}


def reshape_cases():
    for dtype in DTYPES:
        yield case("Flatten", dtype, data(2, 3, 2, dtype=dtype))
        yield case("Reshape", dtype, data(2, 3, dtype=dtype), {"shape": "(3, 2)"})
    for name, shape in [("vector", (5,)), ("matrix", (3, 4)), ("odd", (3, 1, 7)), ("five", (1, 2, 3, 2, 1))]:
        yield case("Flatten", name, data(*shape))
    yield case("Flatten", "add", data(2, 3, 2), grad_req="add")
    yield case("Reshape", "add", data(2, 3, 2), {"shape": "(-1,)"}, grad_req="add")
    for index, (shape, target, reverse) in enumerate(
        [
            ((2, 3, 4), "(4, 0, 2)", False),
            ((2, 3, 4), "(2, 0, 0)", False),
            ((2, 3, 4), "(6, 1, -1)", False),
            ((2, 3, 4), "(3, -1, 8)", False),
            ((2, 3, 4), "(-1,)", False),
            ((2, 3, 4), "(-2,)", False),
            ((2, 3, 4), "(2, -2)", False),
            ((2, 3, 4), "(-2, 1, 1)", False),
            ((2, 3, 4), "(-3, 4)", False),
            ((2, 3, 4, 5), "(-3, -3)", False),
            ((2, 3, 4), "(0, -3)", False),
            ((2, 3, 4), "(-3, -2)", False),
            ((2, 3, 4), "(-4, 1, 2, -2)", False),
            ((2, 3, 4), "(2, -4, -1, 3, -2)", False),
            ((2, 6, 4), "(0, -4, 2, -1, 0)", False),
            ((8, 3), "(-4, -1, 2, 0)", False),
            ((2, 3, 4), "(0, 0, -1)", False),
            ((3, 1, 7), "(-1, 3)", False),
            ((10, 5, 4), "(-1, 0)", False),
            ((10, 5, 4), "(-1, 0)", True),
            ((2, 3, 4), "(-3, 0)", True),
            ((2, 3, 4), "(0, -3)", True),
            ((2, 3, 8), "(0, -4, -1, 2)", True),
            ((2, 3, 4), "(-2, 4)", True),
            ((2, 3, 4), "(0, -1)", True),
            ((2, 3, 4), "[6, 4]", False),
            ((6,), "(6,)", False),
            ((6,), "6", False),
            ((1,), "(1, 1)", False),
            ((2, 3, 8), "(0, -1, 2, -4)", True),
        ]
    ):
        attrs = {"shape": target}
        if reverse:
            attrs["reverse"] = "True"
        yield case("Reshape", "code%02d" % index, data(*shape), attrs)
    for name, shape, attrs in [
        ("target", (2, 3, 4), {"target_shape": "(4, 6)"}),
        ("target_zero", (2, 3, 4), {"target_shape": "(2, 0)"}),
        ("target_zero_first", (2, 3, 4), {"target_shape": "(0, 4)"}),
        ("target_zero_middle", (2, 3, 4), {"target_shape": "(2, 0, 2)"}),
        ("keep", (2, 3, 4), {"target_shape": "(0, 12)", "keep_highest": "True"}),
        ("keep_infer", (2, 3, 4), {"target_shape": "(5, 0)", "keep_highest": "True"}),
        ("keep_infer3", (2, 3, 4), {"target_shape": "(0, 0, 6)", "keep_highest": "1"}),
        ("shape_wins", (2, 3, 4), {"shape": "(6, 4)", "target_shape": "(4, 6)"}),
    ]:
        yield case("Reshape", name, data(*shape), attrs)
    for name, shape, attrs in [
        ("bad_count", (2, 3), {"shape": "(4, 2)"}),
        ("bad_infer", (2, 3), {"shape": "(4, -1)"}),
        ("two_unknown", (2, 3), {"shape": "(-1, -1)"}),
        ("bad_code", (2, 3), {"shape": "(-5, 6)"}),
        ("bad_split", (2, 3), {"shape": "(-4, 3, 2, 0)"}),
        ("split_both_unknown", (4, 3), {"shape": "(-4, -1, -1, 0)"}),
        ("merge_past_end", (2, 3), {"shape": "(0, -3)"}),
        ("zero_past_end", (2, 3), {"shape": "(0, 0, 0)"}),
        ("target_two_zero", (2, 3, 4), {"target_shape": "(0, 0)"}),
        ("no_shape", (2, 3), {}),
    ]:
        yield case("Reshape", name, data(*shape), attrs, expect_error=True)

    def pair(a, b, dtype="float32", other=None):
        return lambda v: {
            "lhs": v.real(*a, dtype=dtype, low=-3, high=3),
            "rhs": v.real(*b, dtype=other or dtype, low=-3, high=3),
        }

    for dtype in DTYPES:
        yield case("reshape_like", dtype, pair((2, 6), (3, 4), dtype))
    for name, a, b, attrs in [
        ("odd", (3, 7), (3, 1, 7), {}),
        ("begins", (30, 7), (15, 2, 4), {"lhs_begin": "0", "lhs_end": "1", "rhs_begin": "0", "rhs_end": "2"}),
        ("middle", (2, 6, 4), (5, 2, 3), {"lhs_begin": "1", "lhs_end": "2", "rhs_begin": "1", "rhs_end": "3"}),
        ("negative", (3, 5, 4), (2, 2), {"lhs_begin": "-1", "lhs_end": "None", "rhs_begin": "0", "rhs_end": "None"}),
        ("merge", (2, 3, 4), (6, 5), {"lhs_begin": "0", "lhs_end": "2", "rhs_begin": "0", "rhs_end": "-1"}),
        ("to_end", (2, 6), (7, 2, 3), {"lhs_begin": "1", "rhs_begin": "1"}),
    ]:
        yield case("reshape_like", name, pair(a, b), attrs)
    yield case("reshape_like", "add", pair((2, 6), (3, 4)), grad_req="add")
    yield case("reshape_like", "mixed_dtype", pair((2, 6), (3, 4), "float32", "int32"))
    yield case("reshape_like", "bad", pair((2, 6), (3, 3)), expect_error=True)


def concat_cases():
    def many(*shapes, dtype="float32"):
        return lambda v: {"arg%d" % i: v.real(*s, dtype=dtype, low=-3, high=3) for i, s in enumerate(shapes)}

    for dtype in DTYPES:
        yield case("Concat", dtype, many((2, 3), (2, 2), dtype=dtype), {"num_args": "2"})
    for name, shapes, dim in [
        ("dim0", [(1, 3), (2, 3), (4, 3)], 0),
        ("dim1", [(2, 1, 3), (2, 3, 3)], 1),
        ("dim2", [(2, 3, 1), (2, 3, 4), (2, 3, 2)], 2),
        ("dim3", [(1, 2, 3, 1), (1, 2, 3, 2)], 3),
        ("negative", [(2, 1, 3), (2, 1, 4)], -1),
        ("negative_first", [(2, 2), (1, 2)], -2),
        ("single", [(2, 3)], 1),
        ("vector", [(1,), (3,)], 0),
        ("odd", [(3, 1, 7), (3, 2, 7)], 1),
        ("five", [(2, 1)] * 5, 1),
    ]:
        yield case("Concat", name, many(*shapes), {"num_args": len(shapes), "dim": dim})
    yield case("Concat", "add", many((2, 3), (2, 1)), {"num_args": "2"}, grad_req="add")
    yield case("Concat", "bad_extent", many((2, 3), (3, 3)), {"num_args": "2"}, expect_error=True)
    yield case("Concat", "bad_rank", many((2, 3), (2, 3, 1)), {"num_args": "2"}, expect_error=True)
    yield case("Concat", "bad_dim", many((2, 3), (2, 3)), {"num_args": "2", "dim": "2"}, expect_error=True)


def transpose_cases():
    for dtype in DTYPES:
        yield case("transpose", dtype, data(2, 3, dtype=dtype))
    for name, shape, axes in [
        ("default3", (2, 3, 4), None),
        ("empty", (2, 3, 4), "()"),
        ("vector", (5,), None),
        ("odd", (3, 1, 7), None),
        ("same", (2, 3, 4), "(0, 1, 2)"),
        ("201", (2, 3, 4), "(2, 0, 1)"),
        ("021", (2, 3, 4), "[0, 2, 1]"),
        ("102", (2, 3, 4), "(1, 0, 2)"),
        ("four", (2, 1, 3, 2), "(0, 2, 3, 1)"),
        ("five", (2, 1, 3, 2, 2), "(4, 0, 3, 1, 2)"),
        ("six", (1, 2, 3, 1, 2, 2), "(5, 4, 0, 3, 1, 2)"),
        ("negative", (2, 3, 4), "(-1, 0, 1)"),
    ]:
        yield case("transpose", name, data(*shape), {} if axes is None else {"axes": axes})
    yield case("transpose", "add", data(2, 3), grad_req="add")
    yield case("transpose", "bad_rank", data(2, 3), {"axes": "(0, 1, 2)"}, expect_error=True)
    yield case("transpose", "repeated", data(2, 3), {"axes": "(0, 0)"}, expect_error=True)


SLICES = [
    ("plain", (4, 5), "(1, 0)", "(3, 4)", None),
    ("none", (4, 5), "(None, 2)", "(None, None)", None),
    ("short", (4, 5, 2), "(1,)", "(3,)", None),
    ("negative", (4, 5), "(-3, -4)", "(-1, -1)", None),
    ("step", (6, 7), "(0, 1)", "(6, 7)", "(2, 3)"),
    ("step_none", (6, 7), "(None, 1)", "(None, None)", "(None, 2)"),
    ("backward", (6, 5), "(4, None)", "(1, None)", "(-1, -1)"),
    ("backward_step", (6, 7), "(None, 6)", "(None, 0)", "(-2, -3)"),
    ("backward_negative", (5, 4), "(-1, 0)", "(-4, 4)", "(-1, 1)"),
    ("past_end", (4, 5), "(2, 0)", "(10, 5)", None),
    ("past_begin", (4, 5), "(-6, 0)", "(3, 4)", None),
    ("odd", (3, 1, 7), "(0, 0, 2)", "(3, 1, 5)", None),
    ("one", (1,), "(0,)", "(1,)", None),
    ("list", (4, 5), "[1, 1]", "[2, 4]", "[]"),
    ("four", (2, 3, 2, 4), "(0, 1, None, 3)", "(2, 3, None, None)", "(1, 1, -1, -2)"),
]
BAD_SLICES = [
    ("empty", (4, 5), "(3, 0)", "(3, 4)", None),
    ("reversed", (4, 5), "(3, 0)", "(1, 4)", None),
    ("step_zero", (4, 5), "(0, 0)", "(4, 5)", "(0, 1)"),
    ("too_long", (4,), "(0, 0)", "(4, 1)", None),
    ("uneven", (4, 5), "(0, 0)", "(4,)", None),
    ("begin_past_end", (4, 5), "(4, 0)", "(5, 4)", None),
]


def bounds(begin, end, step):
    attrs = {"begin": begin, "end": end}
    if step is not None:
        attrs["step"] = step
    return attrs


def assign(op, name, make, attrs, **more):
    """The slice assignments have no gradient."""
    return case(op, name, make, attrs, grad_req="null", **more)


def numpy_slice(shape, begin, end, step):
    """Shape of the slice, worked out by numpy."""
    begin, end = list(literal_eval(begin)), list(literal_eval(end))
    step = list(literal_eval(step)) if step else []
    step += [None] * (len(begin) - len(step))
    return np.zeros(shape)[tuple(slice(*p) for p in zip(begin, end, step))].shape


def slice_cases():
    for dtype in DTYPES:
        attrs = bounds("(1, 0)", "(3, 4)", "(1, 2)")
        yield case("slice", dtype, data(4, 5, dtype=dtype), attrs)
        yield assign(
            "_slice_assign",
            dtype,
            lambda v: {"lhs": v.real(4, 5, dtype=dtype), "rhs": v.real(2, 2, dtype=dtype)},
            attrs,
        )
        yield assign("_slice_assign_scalar", dtype, data(4, 5, dtype=dtype), dict(attrs, scalar="2.5"))
    for name, shape, begin, end, step in SLICES:
        attrs = bounds(begin, end, step)
        yield case("slice", name, data(*shape), attrs)
        part = numpy_slice(shape, begin, end, step)
        yield assign("_slice_assign", name, lambda v: {"lhs": v.real(*shape), "rhs": v.real(*part)}, attrs)
        yield assign("_slice_assign_scalar", name, data(*shape), dict(attrs, scalar="-1.5"))
    for name, shape, begin, end, step in BAD_SLICES:
        attrs = bounds(begin, end, step)
        yield case("slice", name, data(*shape), attrs, expect_error=True)
        # Assigning to nothing is allowed; reading nothing is not.
        nothing = name in ("empty", "reversed", "begin_past_end")
        yield assign("_slice_assign_scalar", name, data(*shape), attrs, expect_error=not nothing)
    attrs = bounds("(1, 0)", "(3, 4)", None)
    yield case("slice", "add", data(4, 5), attrs, grad_req="add")
    yield case(
        "_slice_assign", "no_gradient", lambda v: {"lhs": v.real(4, 5), "rhs": v.real(2, 4)}, attrs, expect_error=True
    )
    yield case("_slice_assign_scalar", "no_gradient", data(4, 5), attrs, expect_error=True)
    yield assign(
        "_slice_assign", "bad_rhs", lambda v: {"lhs": v.real(4, 5), "rhs": v.real(2, 3)}, attrs, expect_error=True
    )


def dot_cases():
    def pair(a, b, dtype="float32"):
        return lambda v: {"lhs": v.real(*a, dtype=dtype), "rhs": v.real(*b, dtype=dtype)}

    for dtype in DTYPES:
        yield case("dot", dtype, pair((2, 3), (3, 4), dtype))
    yes = {"transpose_a": "True"}
    yes_b = {"transpose_b": "True"}
    both = {"transpose_a": "1", "transpose_b": "true"}
    for name, a, b, attrs in [
        ("ta", (3, 2), (3, 4), yes),
        ("tb", (2, 3), (4, 3), yes_b),
        ("tab", (3, 2), (4, 3), both),
        ("vectors", (5,), (5,), {}),
        ("one", (1,), (1,), {}),
        ("vector_matrix", (3,), (3, 4), {}),
        ("matrix_vector", (2, 3), (3,), {}),
        ("vector_matrix_tb", (3,), (4, 3), yes_b),
        ("matrix_vector_ta", (3, 2), (3,), yes),
        ("nd_matrix", (2, 3, 4), (4, 5), {}),
        ("matrix_nd", (2, 3), (3, 4, 2), {}),
        ("nd_nd", (2, 1, 3), (3, 2, 2), {}),
        ("nd_ta", (3, 2, 2), (3, 4), yes),
        ("nd_tb", (2, 3), (4, 2, 3), yes_b),
        ("nd_tab", (3, 2, 2), (2, 2, 3), both),
        ("odd", (3, 7), (7, 1), {}),
        ("hint", (2, 3), (3, 2), {"forward_stype": "default"}),
    ]:
        yield case("dot", name, pair(a, b), attrs)
    yield case("dot", "add", pair((2, 3), (3, 4)), grad_req="add")
    yield case("dot", "add_nd", pair((2, 2, 3), (3, 4)), grad_req="add")
    yield case("dot", "bad", pair((2, 3), (4, 3)), expect_error=True)


def cases():
    yield from reshape_cases()
    yield from concat_cases()
    yield from transpose_cases()
    yield from slice_cases()
    yield from dot_cases()
