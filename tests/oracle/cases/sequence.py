# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Sequences of different lengths in one batch."""

import numpy as np

from .common import DTYPES, case


def cases():
    for op in ("SequenceMask", "SequenceLast", "SequenceReverse"):
        use = {"use_sequence_length": "True"}

        def both(shape, lengths, dtype="float32", length_dtype="float32"):
            return lambda v: {
                "data": v.real(*shape, dtype=dtype, low=-3, high=3),
                "sequence_length": np.array(lengths, length_dtype),
            }

        def alone(*shape):
            return lambda v: {"data": v.real(*shape)}

        for dtype in DTYPES:
            yield case(op, dtype, both((4, 3, 2), [1, 4, 2], dtype), use)
            yield case(op, "by_" + dtype, both((4, 3, 2), [1, 1, 1], length_dtype=dtype), use)
        yield case(op, "whole", alone(3, 2, 4))
        yield case(op, "whole_matrix", alone(3, 2))
        yield case(op, "matrix", both((3, 4), [3, 1, 2, 1]), use)
        yield case(op, "fractions", both((3, 2, 2), [1.75, 2.25]), use)
        yield case(op, "deep", both((5, 2, 1, 3, 2), [5, 3]), use)
        yield case(op, "one_step", both((1, 3, 2), [1, 1, 1]), use)
        yield case(op, "add", both((4, 3, 2), [1, 4, 2]), use, grad_req="add")
        yield case(op, "add_whole", alone(4, 3), grad_req="add")
        if op != "SequenceReverse":
            yield case(op, "batch_first", both((3, 4, 2), [1, 4, 2]), dict(use, axis="1"))
            yield case(op, "batch_first_whole", alone(3, 4, 2), {"axis": "1"})
            yield case(op, "batch_first_matrix", both((3, 4), [1, 4, 2]), dict(use, axis="1"))
        if op != "SequenceLast":
            yield case(op, "nothing", both((3, 2, 2), [0, 2]), use)
        yield case(op, "vector", alone(3), expect_error=True)
        yield case(op, "bad_axis", alone(2, 3, 4), {"axis": "2"}, expect_error=True)
        yield case(op, "bad_lengths", both((4, 3, 2), [1, 4]), use, expect_error=True)
    for dtype in ("float32", "float16", "int32", "uint8"):
        yield case(
            "SequenceMask",
            "value_" + dtype,
            lambda v: {"data": v.real(3, 2, 2, dtype=dtype), "sequence_length": np.array([1, 2], "float32")},
            dict(use_sequence_length="True", value="-1.5" if dtype != "uint8" else "7.5"),
        )
    yield case(
        "SequenceMask",
        "longer",
        lambda v: {"data": v.real(3, 2, 2), "sequence_length": np.array([1, 9], "float32")},
        {"use_sequence_length": "True"},
    )
    yield case("SequenceReverse", "batch_first", lambda v: {"data": v.real(3, 2, 2)}, {"axis": "1"}, expect_error=True)
