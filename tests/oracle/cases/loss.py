# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Outputs that make their own gradient, and gradient stoppers."""

import numpy as np

from .common import DTYPES, case


def softmax_cases():
    op = "SoftmaxOutput"

    def rows(n, k, dtype="float32", label_dtype=None, ignore=None):
        def make(v):
            label = v.labels(n, classes=k, dtype=label_dtype or dtype)
            if ignore is not None:
                label[::2] = ignore
            return {"data": v.real(n, k, dtype=dtype), "label": label}

        return make

    for dtype in DTYPES:
        yield case(op, dtype, rows(4, 3, dtype))
    yield case(op, "label_int32", rows(4, 3, "float32", "int32"))
    variants = [
        ("default", {}, None),
        ("grad_scale", {"grad_scale": "0.25"}, None),
        ("use_ignore", {"use_ignore": "True", "ignore_label": "1"}, 1),
        ("use_ignore_default", {"use_ignore": "True"}, -1),
        ("ignore_without_use", {"ignore_label": "1"}, 1),
        ("batch", {"normalization": "batch"}, None),
        ("valid", {"normalization": "valid"}, None),
        ("null", {"normalization": "null"}, None),
        ("valid_ignore", {"normalization": "valid", "use_ignore": "True", "ignore_label": "0"}, 0),
        ("batch_ignore", {"normalization": "batch", "use_ignore": "True", "ignore_label": "0"}, 0),
        ("valid_ignore_unused", {"normalization": "valid", "ignore_label": "0"}, 0),
        ("out_grad", {"out_grad": "True"}, None),
        ("out_grad_scale", {"out_grad": "True", "grad_scale": "3", "normalization": "batch"}, None),
        ("out_grad_ignore", {"out_grad": "True", "use_ignore": "True", "ignore_label": "2"}, 2),
        ("smooth", {"smooth_alpha": "0.1"}, None),
        ("smooth_ignore", {"smooth_alpha": "0.3", "use_ignore": "True", "ignore_label": "1"}, 1),
        ("smooth_batch", {"smooth_alpha": "0.2", "normalization": "batch", "grad_scale": "2"}, None),
        ("smooth_out_grad", {"smooth_alpha": "0.2", "out_grad": "True"}, None),
        (
            "all",
            {
                "smooth_alpha": "0.2",
                "normalization": "valid",
                "grad_scale": "2",
                "use_ignore": "True",
                "ignore_label": "1",
            },
            1,
        ),
    ]
    for name, attrs, ignore in variants:
        yield case(op, "rows_" + name, rows(5, 4, ignore=ignore), attrs)

        # One label per position: data (n, classes, positions...).
        def positions(v, shape=(2, 3, 2, 2), label=(2, 2, 2)):
            labels = v.labels(*label, classes=shape[1])
            if ignore is not None:
                labels.flat[::3] = ignore
            return {"data": v.real(*shape), "label": labels}

        yield case(op, "multi_" + name, positions, dict(attrs, multi_output="True"))

        def last_axis(v, shape=(2, 3, 4)):
            labels = v.labels(*shape[:-1], classes=shape[-1])
            if ignore is not None:
                labels.flat[::3] = ignore
            return {"data": v.real(*shape), "label": labels}

        yield case(op, "preserve_" + name, last_axis, dict(attrs, preserve_shape="True"))

        # Same shape as the data: the label is a distribution.
        def distribution(v, shape=(3, 4)):
            label = v.real(*shape, low=0, high=1)
            return {"data": v.real(*shape), "label": label}

        yield case(op, "distribution_" + name, distribution, attrs)

    def flat_label(shape, label):
        return lambda v: {"data": v.real(*shape), "label": v.labels(*label, classes=shape[1])}

    for name, shape, label, attrs in [
        ("multi_flat_label", (2, 3, 2, 2), (2, 4), {"multi_output": "True"}),
        ("multi_kept_label", (2, 3, 2, 2), (2, 1, 2, 2), {"multi_output": "True"}),
        ("multi_3d", (2, 3, 5), (2, 5), {"multi_output": "True"}),
        ("multi_2d", (4, 3), (4,), {"multi_output": "True"}),
        ("flattened", (3, 2, 2), (3,), {}),
        ("column_label", (3, 4), (3, 1), {}),
        ("one_row", (1, 5), (1,), {}),
        ("one_class", (4, 1), (4,), {}),
        ("odd", (3, 1, 7), (3, 7), {"multi_output": "True"}),
        ("primes", (7, 11), (7,), {"normalization": "batch"}),
    ]:
        yield case(op, name, flat_label(shape, label), attrs)
    for name, attrs in [("add", {}), ("add_batch", {"normalization": "batch"})]:
        yield case(op, name, rows(4, 3), attrs, grad_req="add")
    yield case(op, "add_multi", flat_label((2, 3, 4), (2, 4)), {"multi_output": "True"}, grad_req="add")
    yield case(
        op,
        "all_ignored",
        lambda v: {"data": v.real(3, 4), "label": np.full((3,), 2, "float32")},
        {"use_ignore": "True", "ignore_label": "2", "normalization": "valid"},
    )
    yield case(op, "label_fraction", lambda v: {"data": v.real(3, 4), "label": np.array([0.7, 1.2, 2.9], "float32")})
    yield case(op, "large", lambda v: {"data": v.real(3, 4) * 100, "label": v.labels(3, classes=4)})
    yield case("Softmax", "old_name", rows(4, 3))
    yield case(op, "bad_label", flat_label((4, 3), (5,)), expect_error=True)
    yield case(op, "bad_normalization", rows(4, 3), {"normalization": "mean"}, expect_error=True)


def regression_cases():
    op = "LinearRegressionOutput"

    def pair(a, b, dtype="float32", label_dtype=None):
        return lambda v: {"data": v.real(*a, dtype=dtype), "label": v.real(*b, dtype=label_dtype or dtype)}

    for dtype in DTYPES:
        yield case(op, dtype, pair((4, 3), (4, 3), dtype))
    for name, a, b, attrs in [
        ("vector", (5,), (5,), {}),
        ("column", (5, 1), (5,), {}),
        ("column_both", (5, 1), (5, 1), {}),
        ("wide", (2, 7), (2, 7), {}),
        ("three", (2, 3, 4), (2, 3, 4), {}),
        ("scale", (4, 3), (4, 3), {"grad_scale": "2.5"}),
        ("scale_negative", (4,), (4,), {"grad_scale": "-1"}),
        ("odd", (3, 1, 7), (3, 1, 7), {}),
        ("one", (1,), (1,), {}),
        ("label_folded", (2, 6), (2, 3, 2), {}),
        ("label_flat", (2, 3, 2), (2, 6), {}),
    ]:
        yield case(op, name, pair(a, b), attrs)
    yield case(op, "add", pair((4, 3), (4, 3)), grad_req="add")
    yield case(op, "bad_label", pair((4, 3), (4, 2)), expect_error=True)
    yield case(op, "label_int32", pair((4, 3), (4, 3), "float32", "int32"))


def loss_cases():
    def data(*shape, dtype="float32"):
        return lambda v: {"data": v.real(*shape, dtype=dtype, low=-2, high=2)}

    for op in ("MakeLoss", "make_loss", "BlockGrad"):
        for dtype in DTYPES:
            yield case(op, dtype, data(3, 4, dtype=dtype))
        yield case(op, "odd", data(3, 1, 7))
        yield case(op, "one", data(1))
        yield case(op, "add", data(2, 5), grad_req="add")
    for name, attrs in [
        ("scale", {"grad_scale": "2.5"}),
        ("null", {"normalization": "null", "grad_scale": "0.5"}),
        ("batch", {"normalization": "batch"}),
        ("batch_scale", {"normalization": "batch", "grad_scale": "3"}),
        ("valid", {"normalization": "valid"}),
        ("valid_scale", {"normalization": "valid", "grad_scale": "3"}),
        ("valid_thresh", {"normalization": "valid", "valid_thresh": "0.75"}),
        ("valid_none", {"normalization": "valid", "valid_thresh": "10"}),
        ("thresh_unused", {"valid_thresh": "0.75"}),
    ]:
        yield case("MakeLoss", name, data(3, 4), attrs)
        yield case("MakeLoss", name + "_add", data(3, 4), attrs, grad_req="add")


def quirk(one):
    """What looks like a mistake of MXNet's, in words, or None."""
    add = one["grad_req"] == "add"
    if one["op"] in ("SoftmaxOutput", "Softmax"):
        if one["attrs"].get("out_grad") == "True":
            return "out_grad multiplies by the output, not by the head gradient"
        if add:
            return "the gradient is overwritten, not added to"
    if one["op"] == "LinearRegressionOutput" and add:
        return "the result is (old + data - label) * (1 + scale)"
    return None


def cases():
    for family in (softmax_cases, regression_cases, loss_cases):
        for one in family():
            one["quirk"] = quirk(one)
            yield one
