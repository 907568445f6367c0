"""Logistic and absolute regression, support vectors, cross entropy."""

from .common import DTYPES, FLOATS, case


def cases():
    for op in ("LogisticRegressionOutput", "MAERegressionOutput"):

        def pair(a, b, dtype="float32"):
            return lambda v: {"data": v.real(*a, dtype=dtype), "label": v.real(*b, dtype=dtype, low=0, high=1)}

        for dtype in DTYPES:
            yield case(op, dtype, pair((4, 3), (4, 3), dtype))
        for name, a, b, attrs in [
            ("vector", (5,), (5,), {}),
            ("column", (5, 1), (5,), {}),
            ("three", (2, 3, 4), (2, 3, 4), {}),
            ("scale", (4, 3), (4, 3), {"grad_scale": "2.5"}),
            ("label_folded", (2, 6), (2, 3, 2), {}),
        ]:
            yield case(op, name, pair(a, b), attrs)
        yield case(op, "bad_label", pair((4, 3), (4, 2)), expect_error=True)

    op = "SVMOutput"

    def scores(shape, label, dtype="float32"):
        return lambda v: {
            "data": v.real(*shape, dtype=dtype),
            "label": v.labels(*label, classes=shape[-1], dtype=dtype),
        }

    for dtype in FLOATS:
        yield case(op, dtype, scores((4, 3), (4,), dtype))
    for name, attrs in [
        ("margin", {"margin": "0.5"}),
        ("coefficient", {"regularization_coefficient": "0.25"}),
        ("linear", {"use_linear": "True"}),
        ("linear_all", {"use_linear": "True", "margin": "0.75", "regularization_coefficient": "3"}),
    ]:
        yield case(op, name, scores((5, 4), (5,)), attrs)
    yield case(op, "bad_label", scores((4, 3), (5,)), expect_error=True)

    op = "softmax_cross_entropy"
    for dtype in FLOATS:
        yield case(op, dtype, scores((4, 3), (4,), dtype), no_grad=["label"])
    yield case(op, "one", scores((1, 5), (1,)), no_grad=["label"])
    yield case(op, "add", scores((3, 5), (3,)), grad_req="add", no_grad=["label"])
    yield case(op, "sure", lambda v: {"data": v.real(3, 4) * 64, "label": v.labels(3, classes=4)}, no_grad=["label"])
    yield case(op, "bad_label", scores((4, 3), (5,)), expect_error=True, no_grad=["label"])
