from .common import DTYPES, case


def cases():
    def make(shape, hidden, inner, bias=True, dtype="float32"):
        def inputs(v):
            result = {"data": v.real(*shape, dtype=dtype), "weight": v.real(hidden, inner, dtype=dtype)}
            if bias:
                result["bias"] = v.real(hidden, dtype=dtype)
            return result

        return inputs

    op = "FullyConnected"
    for dtype in DTYPES:
        yield case(op, dtype, make((2, 3), 4, 3, dtype=dtype), {"num_hidden": "4"})
        yield case(op, dtype + "_no_bias", make((2, 3), 4, 3, False, dtype), {"num_hidden": "4", "no_bias": "True"})
    for name, shape, inner, attrs in [
        ("flatten", (2, 3, 2), 6, {}),
        ("flatten4", (2, 1, 3, 2), 6, {"flatten": "True"}),
        ("last_axis", (2, 3, 4), 4, {"flatten": "False"}),
        ("last_axis4", (2, 1, 3, 4), 4, {"flatten": "0"}),
        ("last_axis2", (3, 4), 4, {"flatten": "False"}),
        ("one_row", (1, 5), 5, {}),
        ("odd", (3, 1, 7), 7, {}),
        ("odd_last", (3, 1, 7), 7, {"flatten": "False"}),
    ]:
        yield case(op, name, make(shape, 5, inner), dict(attrs, num_hidden="5"))
        yield case(op, name + "_no_bias", make(shape, 5, inner, False), dict(attrs, num_hidden="5", no_bias="True"))
    yield case(op, "one_unit", make((3, 4), 1, 4), {"num_hidden": "1"})
    yield case(op, "larger", make((7, 13), 11, 13), {"num_hidden": "11"})
    yield case(op, "add", make((2, 3), 4, 3), {"num_hidden": "4"}, grad_req="add")
    yield case(op, "add_last_axis", make((2, 3, 3), 4, 3), {"num_hidden": "4", "flatten": "False"}, grad_req="add")
    yield case(op, "vector_last_axis", make((4,), 3, 4), {"num_hidden": "3", "flatten": "False"})
    yield case(op, "vector_rows", make((4,), 3, 1), {"num_hidden": "3"})
    yield case(op, "vector", make((4,), 3, 4), {"num_hidden": "3"}, expect_error=True)
    yield case(op, "bad_weight", make((2, 3), 4, 5), {"num_hidden": "4"}, expect_error=True)
    yield case(op, "missing_hidden", make((2, 3), 4, 3), expect_error=True)
    yield case(op, "zero_hidden", make((2, 3), 4, 3), {"num_hidden": "0"}, expect_error=True)
    yield case(op, "unknown_attribute", make((2, 3), 4, 3), {"num_hidden": "4", "hidden": "4"}, expect_error=True)
