# ruff: noqa: B023 (a case is made immediately, before the loop goes on)
"""Connectionist temporal classification."""

import numpy as np

from .common import case

FIRST = [[1, 2, 1], [3, 0, 0], [2, 2, 0], [0, 0, 0]]
LAST = [[0, 1, 0], [2, -1, -1], [1, 1, -1], [-1, -1, -1]]


def cases():
    def loss(name, labels, attrs=None, steps=6, classes=4, dtype="float32", label_dtype="float32", **more):
        lengths = {key: more.pop(key) for key in ("data_lengths", "label_lengths") if key in more}
        labels = np.array(labels, label_dtype)

        def inputs(v):
            made = {"data": v.real(steps, len(labels), classes, dtype=dtype), "label": labels}
            made.update({key: np.array(value, "float32") for key, value in lengths.items()})
            return made

        return case("CTCLoss", name, inputs, dict(attrs or {}, **{"use_" + key: "True" for key in lengths}), **more)

    last = {"blank_label": "last"}
    yield loss("first", FIRST)
    yield loss("last", LAST, last)
    yield loss("named_first", FIRST, {"blank_label": "first"})
    yield loss("add", FIRST, grad_req="add")
    yield loss("whole_numbers", FIRST, label_dtype="int32")
    yield loss("steps", FIRST, data_lengths=[6, 1, 4, 2])
    yield loss("steps_last", LAST, last, data_lengths=[3, 6, 5, 1])
    yield loss("labels", [[1, 2, 1], [3, 1, 2], [2, 2, 3], [1, 1, 1]], label_lengths=[3, 1, 2, 0])
    yield loss("labels_last", [[0, 1, 0], [2, 1, 0], [1, 1, 2], [0, 0, 0]], last, label_lengths=[3, 1, 2, 0])
    # Both lengths could be one array, which a test tries.
    yield loss("both_last", [[0, 1, 0], [2, 1, 0], [1, 1, 2]], last, data_lengths=[3, 2, 3], label_lengths=[3, 1, 2])
    yield loss("both", [[1, 2, 1], [3, 1, 2]], data_lengths=[3, 2], label_lengths=[2, 1])
    yield loss("impossible", [[1, 1], [1, 2]], steps=2)
    yield loss("no_steps", [[1, 1], [1, 2]], data_lengths=[0, 6])
    yield loss("one_step", [[1], [0]], steps=1)
    yield loss("long", [[1, 2, 3, 4, 4, 5, 6, 7, 7, 7], [9, 9, 9, 0, 0, 0, 0, 0, 0, 0]], steps=18, classes=12)
    yield loss("wrong_batch", [[1, 2], [1, 0]], expect_error=True, data_lengths=[3])
    yield case(
        "CTCLoss",
        "matrix",
        lambda v: {"data": v.real(4, 3), "label": np.array([[1, 2]], "float32")},
        expect_error=True,
    )
    yield loss("middle", FIRST, {"blank_label": "middle"}, expect_error=True)
    for alias in ("ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"):
        yield case(alias, "alias", lambda v: {"data": v.real(4, 2, 3), "label": np.array([[1, 2], [1, 0]], "float32")})
