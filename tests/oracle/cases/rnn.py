"""Recurrent layers as one operator."""

import numpy as np

from .common import case

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def arrays(mode, steps, batch, features, hidden, layers=1, directions=1, dtype="float32"):
    gates = GATES[mode]
    count = 0
    for layer in range(layers):
        inputs = features if layer == 0 else directions * hidden
        count += directions * gates * hidden * (inputs + hidden + 2)

    def make(v):
        made = {
            "data": v.real(steps, batch, features, dtype=dtype),
            "parameters": v.real(count, dtype=dtype, low=-0.5, high=0.5),
            "state": v.real(layers * directions, batch, hidden, dtype=dtype),
        }
        if mode == "lstm":
            made["state_cell"] = v.real(layers * directions, batch, hidden, dtype=dtype)
        return made

    return make


def attributes(mode, hidden, layers=1, **more):
    return dict({"mode": mode, "state_size": str(hidden), "num_layers": str(layers)}, **more)


def cases():
    op = "RNN"
    for mode in GATES:
        for dtype in ("float32", "float64"):
            one = case(op, mode + "_" + dtype, arrays(mode, 4, 2, 3, 5, dtype=dtype), attributes(mode, 5))
            if mode == "rnn_relu" and dtype == "float64":
                one["quirk"] = "parts of the gradient are computed in float32"
            yield one
        states = {"state_outputs": "True"}
        yield case(op, mode + "_states", arrays(mode, 3, 2, 4, 3), attributes(mode, 3, **states))
        yield case(op, mode + "_layers", arrays(mode, 3, 2, 2, 3, layers=3), attributes(mode, 3, layers=3, **states))
        both = dict(states, bidirectional="True")
        yield case(op, mode + "_both", arrays(mode, 4, 3, 2, 3, directions=2), attributes(mode, 3, **both))
        yield case(
            op,
            mode + "_both_layers",
            arrays(mode, 3, 2, 2, 3, layers=2, directions=2),
            attributes(mode, 3, layers=2, **both),
        )
        yield case(op, mode + "_one_step", arrays(mode, 1, 3, 2, 4), attributes(mode, 4, **states))
        yield case(op, mode + "_add", arrays(mode, 3, 2, 4, 3), attributes(mode, 3), grad_req="add")
        yield case(op, mode + "_long", arrays(mode, 20, 1, 3, 17), attributes(mode, 17, **states))
        yield case(op, mode + "_bad_parameters", arrays(mode, 3, 2, 4, 3), attributes(mode, 4), expect_error=True)
    # Off their defaults, where the wheel's CPU, which ignores these parameters, is right none the less.
    yield case(op, "dropout_of_one_layer", arrays("lstm", 3, 2, 4, 3), attributes("lstm", 3, p="0.5"))
    yield case(
        op, "dropout", arrays("gru", 3, 2, 4, 3, layers=2), attributes("gru", 3, layers=2, p="0.5"), compare="shape"
    )
    clip = {"lstm_state_clip_min": "-100", "lstm_state_clip_max": "100", "lstm_state_clip_nan": "True"}
    yield case(op, "wide_clip", arrays("lstm", 3, 2, 4, 3), attributes("lstm", 3, **clip))
    for mode in ("lstm", "gru"):
        yield case(
            op,
            mode + "_whole_lengths",
            lambda v, mode=mode: dict(arrays(mode, 3, 2, 4, 3)(v), sequence_length=np.array([3, 3], "float32")),
            attributes(mode, 3, use_sequence_length="True"),
            no_grad=["sequence_length"],
        )
    yield case(op, "no_mode", arrays("gru", 3, 2, 4, 3), {"state_size": "3", "num_layers": "1"}, expect_error=True)
    yield case(op, "bad_mode", arrays("gru", 3, 2, 4, 3), attributes("rnn", 3), expect_error=True)
    yield case(op, "bad_p", arrays("gru", 3, 2, 4, 3), attributes("gru", 3, p="1.5"), expect_error=True)
    yield case(
        op,
        "matrix",
        lambda v: {"data": v.real(3, 4), "parameters": v.real(72), "state": np.zeros((1, 2, 3), "float32")},
        attributes("gru", 3),
        expect_error=True,
    )
