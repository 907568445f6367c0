"""softmax, log_softmax, softmin and SoftmaxActivation."""

import numpy as np

from .common import DTYPES, case


def cases():
    def data(*shape, dtype="float32"):
        return lambda v: {"data": v.real(*shape, dtype=dtype, low=-3, high=3)}

    for op in ("softmax", "log_softmax", "softmin"):
        for dtype in DTYPES:
            yield case(op, dtype, data(3, 4, dtype=dtype))
        for name, shape, attrs in [
            ("axis0", (3, 4), {"axis": "0"}),
            ("axis1", (2, 3, 4), {"axis": "1"}),
            ("axis_negative", (2, 3, 4), {"axis": "-2"}),
            ("vector", (7,), {}),
            ("temperature", (3, 4), {"temperature": "2.5"}),
            ("temperature_axis", (3, 4, 2), {"temperature": "0.5", "axis": "1"}),
            ("temperature_none", (3, 4), {"temperature": "None"}),
            ("to_float64", (3, 4), {"dtype": "float64"}),
            ("long", (2, 300), {}),
        ]:
            yield case(op, name, data(*shape), attrs)
        yield case(op, "add", data(2, 5), grad_req="add")
        yield case(op, "large", lambda v: {"data": v.real(3, 4) * 100})
        yield case(op, "bad_axis", data(2, 3), {"axis": "2"}, expect_error=True)

    def with_length(shape, lengths, dtype="int32"):
        return lambda v: {
            "data": v.real(*shape, low=-3, high=3),
            "length": np.array(lengths, dtype),
        }

    for name, shape, lengths, attrs in [
        ("length", (3, 4), [4, 2, 1], {}),
        ("length_none", (3, 4), [4, 0, 1], {}),
        ("length_axis1", (2, 3, 2), [[3, 1], [2, 2]], {"axis": "1"}),
        ("length_temperature", (3, 4), [4, 2, 1], {"temperature": "2"}),
    ]:
        yield case("softmax", name, with_length(shape, lengths), dict(attrs, use_length="True"), no_grad=["length"])
    yield case(
        "softmax",
        "length_int64",
        with_length((2, 4), [3, 1], "int64"),
        {"use_length": "True"},
        no_grad=["length"],
    )

    op = "SoftmaxActivation"
    for dtype in DTYPES:
        yield case(op, dtype, data(3, 4, dtype=dtype))
        yield case(op, "channel_" + dtype, data(2, 3, 2, dtype=dtype), {"mode": "channel"})
    yield case(op, "channel_images", data(2, 3, 2, 2), {"mode": "channel"})
    three = case(op, "three_axes", data(2, 3, 2))
    three["quirk"] = "the gradient is taken along axis 1, the softmax along the last"
    yield three
