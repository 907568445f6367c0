"""The likelihood of a Hawkes process. MXNet's gradient leaves out the states at the end, so none arrives there."""

import numpy as np

from .common import case

WITHOUT_GRADIENT = ("lags", "marks", "valid_length", "max_time")


def process(batch, kinds, events, lengths, ends, dtype="float32"):
    def inputs(v):
        return {
            "lda": v.real(batch, kinds, dtype=dtype, low=0.5, high=2),
            "alpha": v.real(kinds, dtype=dtype, low=0.25, high=0.75),
            "beta": v.real(kinds, dtype=dtype, low=0.5, high=2),
            "state": v.real(batch, kinds, dtype=dtype, low=0, high=1),
            "lags": v.real(batch, events, dtype=dtype, low=0.25, high=0.75),
            "marks": v.labels(batch, events, classes=kinds, dtype="int32"),
            "valid_length": np.array(lengths, dtype),
            "max_time": np.array(ends, dtype),
        }

    return inputs


def cases():
    for dtype in ("float32", "float64"):
        for name, arguments in {
            "plain": (2, 3, 6, [6, 4], [5, 6]),
            "one_kind": (1, 1, 4, [4], [4]),
            "no_events": (2, 2, 3, [0, 2], [3, 3]),
            "many": (5, 4, 20, [20, 7, 13, 1, 16], [18, 19, 20, 12, 15]),
        }.items():
            batch, kinds = arguments[:2]
            yield case(
                "_contrib_hawkesll",
                "%s_%s" % (name, dtype),
                process(*arguments, dtype=dtype),
                no_grad=WITHOUT_GRADIENT,
                out_grads=[np.arange(1, batch + 1), np.zeros((batch, kinds))],
            )
