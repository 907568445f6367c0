#!/usr/bin/env python3
"""Records what MXNet 1.9.1's metrics and initializers answer to our cases.

    python record_metrics.py             write recorded/metrics.json.gz
    python record_metrics.py --out DIR   write somewhere else

See README.md for the environment and the format of what is written.
"""

import json
import os
import pathlib
import sys
import warnings

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from record import encode, write_json  # noqa: E402

warnings.filterwarnings("ignore")

HERE = pathlib.Path(__file__).resolve().parent


# ------------------------------------------------------------------ inputs


def rng_of(text):
    return np.random.RandomState(sum((i + 1) * ord(c) for i, c in enumerate(text)) % 2**31)


def scores(rng, *shape):
    """Positive rows that add up to 1; all different."""
    values = rng.rand(*shape).astype("float32") + 0.01
    return values / values.sum(axis=-1, keepdims=True)


def labels(rng, classes, *shape):
    return rng.randint(0, classes, shape).astype("float32")


# A batch is (labels, predictions), both lists.


def classified(rng, sizes, classes, label_tail=()):
    return [([labels(rng, classes, n, *label_tail)], [scores(rng, n, classes)]) for n in sizes]


def numbers(rng, shapes, label_shapes=None):
    label_shapes = label_shapes or shapes
    return [
        ([rng.randn(*a).astype("float32")], [rng.randn(*b).astype("float32")]) for a, b in zip(label_shapes, shapes)
    ]


# ------------------------------------------------------------------- cases


def metric_cases():
    """(id, metric name, arguments, batches)"""

    def case(name, metric, make, **arguments):
        return (f"{metric}/{name}", metric, arguments, make(rng_of(f"{metric}/{name}")))

    some = [4, 7, 1, 5]
    yield case("rows", "acc", lambda r: classified(r, some, 10))
    yield case("two_classes", "accuracy", lambda r: classified(r, some, 2))
    yield case("column_labels", "acc", lambda r: classified(r, some, 3, (1,)))
    yield case("many_classes", "acc", lambda r: classified(r, [32, 9], 101))
    yield case("classes_given", "acc", lambda r: [([labels(r, 3, n)], [labels(r, 3, n)]) for n in some])
    yield case("one_column", "acc", lambda r: [([labels(r, 2, n, 1)], [2 * r.rand(n, 1)]) for n in some])
    yield case("axis_1_of_3", "acc", lambda r: [([labels(r, 3, 2, 5)], [scores(r, 2, 3, 5)]) for _ in some])
    yield case("last_axis", "acc", lambda r: [([labels(r, 4, 2, 5)], [scores(r, 2, 5, 4)]) for _ in some], axis=-1)
    yield case("axis_0", "acc", lambda r: [([labels(r, 4, 6)], [scores(r, 4, 6)]) for _ in some], axis=0)
    yield case("equal_scores", "acc", lambda r: [([labels(r, 3, 20)], [r.randint(0, 2, (20, 3))])])
    yield case(
        "two_outputs",
        "acc",
        lambda r: [([labels(r, 3, n), labels(r, 5, n)], [scores(r, n, 3), scores(r, n, 5)]) for n in some],
    )
    yield case("labels_beyond", "acc", lambda r: [([np.array([-1, 0, 9])], [scores(r, 3, 4)])])
    yield case("empty_batch", "acc", lambda r: [([np.zeros((0,))], [np.zeros((0, 3))])])

    for top_k in (2, 3, 5):
        yield case(f"{top_k}_of_10", "top_k_accuracy", lambda r: classified(r, some, 10), top_k=top_k)
    yield case("all", "top_k_acc", lambda r: classified(r, some, 3), top_k=3)
    yield case("column_labels", "top_k_accuracy", lambda r: classified(r, some, 6, (1,)), top_k=2)

    for metric in ("f1", "mcc"):
        yield case("macro", metric, lambda r: classified(r, some, 2))
        yield case("micro", metric, lambda r: classified(r, some, 2), average="micro")
        yield case("three_scores", metric, lambda r: [([labels(r, 2, n)], [scores(r, n, 3)]) for n in some])
        yield case(
            "two_outputs",
            metric,
            lambda r: [([labels(r, 2, n), labels(r, 2, n)], [scores(r, n, 2), scores(r, n, 2)]) for n in some],
        )
        yield case("all_negative", metric, lambda r: [([np.zeros(n)], [np.tile([0.9, 0.1], (n, 1))]) for n in some])
        yield case("all_positive", metric, lambda r: [([np.ones(n)], [np.tile([0.1, 0.9], (n, 1))]) for n in some])
        yield case("three_classes", metric, lambda r: [([np.array([0, 1, 2])], [scores(r, 3, 3)])])

    for metric in ("ce", "crossentropy", "nll_loss", "negativeloglikelihood"):
        yield case("rows", metric, lambda r: classified(r, some, 4))
        yield case("column_labels", metric, lambda r: classified(r, some, 4, (1,)))
        yield case("large_eps", metric, lambda r: classified(r, some, 4), eps=0.25)
        yield case("certainly_wrong", metric, lambda r: [([np.array([0, 1])], [np.array([[0, 1], [1, 0]])])])
        yield case("label_beyond", metric, lambda r: [([np.array([0, 4])], [scores(r, 2, 4)])])
        yield case("too_few_labels", metric, lambda r: [([np.array([0])], [scores(r, 2, 4)])])

    yield case("all", "perplexity", lambda r: classified(r, some, 5), ignore_label=None)
    yield case("ignore_0", "perplexity", lambda r: classified(r, [6, 6, 6], 3), ignore_label=0)
    yield case("ignore_none_there", "perplexity", lambda r: classified(r, some, 3), ignore_label=7)
    yield case("ignore_everything", "perplexity", lambda r: [([np.ones(3)], [scores(r, 3, 2)])], ignore_label=1)
    yield case(
        "sentences",
        "perplexity",
        lambda r: [([labels(r, 5, 3, 4)], [scores(r, 12, 5)]) for _ in some],
        ignore_label=-1,
    )
    every = {"ignore_label": None}
    impossible = np.array([[0, 1], [0.5, 0.5]])
    yield case("labels_beyond", "perplexity", lambda r: [([np.array([7, -1, 0])], [scores(r, 3, 2)])], **every)
    yield case("impossible", "perplexity", lambda r: [([np.array([0, 1])], [impossible])], **every)
    yield case("square_axis_0", "perplexity", lambda r: [([labels(r, 3, 3)], [scores(r, 3, 3)])], axis=0, **every)
    yield case("too_few_labels", "perplexity", lambda r: [([np.array([0])], [scores(r, 2, 4)])], **every)

    for metric in ("mae", "mse", "rmse"):
        yield case("vectors", metric, lambda r: numbers(r, [(4,), (7,), (1,)]))
        yield case("columns", metric, lambda r: numbers(r, [(4, 1), (7, 1)], [(4,), (7,)]))
        yield case("vector_against_column", metric, lambda r: numbers(r, [(4,), (7,)], [(4, 1), (7, 1)]))
        yield case("label_for_all_columns", metric, lambda r: numbers(r, [(4, 3), (7, 3)], [(4,), (7,)]))
        yield case("pred_for_all_columns", metric, lambda r: numbers(r, [(4, 1)], [(4, 3)]))
        yield case("matrices", metric, lambda r: numbers(r, [(4, 3), (2, 6)]))
        yield case("images", metric, lambda r: numbers(r, [(2, 3, 4, 5)]))
        yield case("repeated_inside", metric, lambda r: numbers(r, [(2, 3, 4)], [(2, 1, 4)]))
        yield case(
            "two_outputs",
            metric,
            lambda r: [
                (a[0] + b[0], a[1] + b[1]) for a, b in zip(numbers(r, [(3,), (5,)]), numbers(r, [(3, 2), (5, 2)]))
            ],
        )
        yield case("different_lengths", metric, lambda r: numbers(r, [(4,)], [(3,)]))
        yield case("different_widths", metric, lambda r: numbers(r, [(4, 3)], [(4, 2)]))

    for metric in ("mae", "mse", "rmse"):  # long enough for rounding to show, and for sums of halves
        yield case("long", metric, lambda r: numbers(r, [(7,), (129,), (20, 15)]))
    yield case("long", "ce", lambda r: classified(r, [300], 3))
    yield case("long", "perplexity", lambda r: classified(r, [150], 3), ignore_label=1)
    yield case("long", "loss", lambda r: [([], [r.rand(n).astype("float32")]) for n in (300, 129)])

    for metric in ("pearsonr", "pearsoncorrelation"):
        yield case("macro", metric, lambda r: numbers(r, [(5,), (9,), (4, 3)]))
        yield case("micro", metric, lambda r: numbers(r, [(5,), (9,), (4, 3)]), average="micro")
        yield case("far_from_zero", metric, lambda r: [([1000 + a[0]], [1000 + b[0]]) for a, b in numbers(r, [(50,)])])
        yield case("different_shapes", metric, lambda r: numbers(r, [(4, 1)], [(4,)]))

    yield case("two_classes", "pcc", lambda r: classified(r, some, 2))
    yield case("five_classes", "pcc", lambda r: classified(r, [20, 30, 7], 5))
    yield case("growing", "pcc", lambda r: [([labels(r, k, 10)], [scores(r, 10, k)]) for k in (2, 3, 6, 4)])
    yield case("labels_beyond_scores", "pcc", lambda r: [([labels(r, 6, 12)], [scores(r, 12, 3)])])
    yield case("classes_given", "pcc", lambda r: [([labels(r, 4, n)], [labels(r, 4, n)]) for n in some])
    yield case("columns_given", "pcc", lambda r: [([labels(r, 3, 9, 1)], [labels(r, 3, 9, 1)])])
    yield case("one_column", "pcc", lambda r: [([labels(r, 3, 9)], [labels(r, 3, 9, 1)])])
    yield case("one_class", "pcc", lambda r: [([np.zeros(4)], [scores(r, 4, 2)])])

    for metric in ("loss", "torch", "caffe"):
        yield case("arrays", metric, lambda r: [([], [r.randn(*s).astype("float32")]) for s in ((4,), (3, 2), (1,))])
        yield case("two_outputs", metric, lambda r: [([], [r.rand(4).astype("float32"), r.rand(2).astype("float32")])])

    yield case("two_labels_one_output", "acc", lambda r: [([labels(r, 2, 3)] * 2, [scores(r, 3, 2)])])
    yield case("too_few_labels", "acc", lambda r: [([labels(r, 2, 3)], [scores(r, 4, 2)])])
    yield case("too_few_labels", "f1", lambda r: [([labels(r, 2, 3)], [scores(r, 4, 2)])])


def finite(values):
    return [v if np.isfinite(v) else str(v) for v in map(float, values)]


def encoded(arrays):
    return [encode(np.asarray(array, "float32")) for array in arrays]


def answers_of(metric):
    def plain(answer):
        names, values = answer
        return {"names": [names] if isinstance(names, str) else names, "values": finite(np.atleast_1d(values))}

    return {"local": plain(metric.get()), "global": plain(metric.get_global())}


def record_metric(case_id, name, arguments, batches):
    """After each batch the answers; after the second, reset_local and the answers again; reset at the end."""
    record = {
        "id": case_id,
        "metric": name,
        "arguments": {key: str(value) for key, value in arguments.items()},
        "batches": [
            {"labels": encoded(batch_labels), "preds": encoded(batch_preds)} for batch_labels, batch_preds in batches
        ],
    }
    steps = []
    try:
        metric = mx.metric.create(name, **arguments)
        for number, (ls, ps) in enumerate(batches):
            with mx.util.np_shape(any(0 in np.shape(a) for a in ls)):
                metric.update([mx.nd.array(a) for a in ls], [mx.nd.array(a) for a in ps])
                steps.append(answers_of(metric))
            if number == 1:
                metric.reset_local()
                steps.append(answers_of(metric))
        metric.reset()
        steps.append(answers_of(metric))
        record["steps"] = steps
    except Exception as error:  # noqa: BLE001
        if os.environ.get("ORACLE_VERBOSE"):
            print(case_id, type(error).__name__, str(error)[:100])
        record["error"] = True
    return record


def record_initializers():
    init = mx.init

    def fused_size(inputs, hidden, layers, gates, ways):
        rows = gates * hidden * ways
        return rows * (inputs + hidden + 2) + (layers - 1) * rows * (ways * hidden + hidden + 2)

    def fused(inputs, hidden, layers, mode, bidirectional=False, forget_bias=1.0):
        """A fused initializer, and the shape of what it fills."""
        gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode]
        return (
            init.FusedRNN(init.Constant(2), hidden, layers, mode, bidirectional, forget_bias),
            "p_weight",
            (fused_size(inputs, hidden, layers, gates, 2 if bidirectional else 1),),
        )

    cases = [
        ("bilinear_4", init.Bilinear(), "up_weight", (2, 3, 4, 4)),
        ("bilinear_odd", init.Bilinear(), "up_weight", (1, 1, 5, 5)),
        ("bilinear_wide", init.Bilinear(), "up_weight", (1, 2, 3, 5)),
        ("bilinear_bias", init.Bilinear(), "up_bias", (4,)),
        ("lstm_bias", init.LSTMBias(), "lstm_weight", (12,)),
        ("lstm_bias_2", init.LSTMBias(2.5), "lstm_weight", (8,)),
        ("lstm_bias_on_a_bias", init.LSTMBias(2.5), "lstm_bias", (8,)),
        ("constant", init.Constant(2.5), "a_weight", (3,)),
        ("constant_gamma", init.Constant(2.5), "a_gamma", (3,)),
        ("fused_lstm", *fused(2, 3, 1, "lstm")),
        ("fused_lstm_deep", *fused(5, 3, 3, "lstm", True, 0.5)),
        ("fused_gru", *fused(3, 4, 2, "gru")),
        ("fused_rnn", *fused(3, 4, 2, "rnn_tanh", True)),
    ]
    records = []
    for name, initializer, parameter, shape in cases:
        array = mx.nd.full(shape, 77)
        initializer(init.InitDesc(parameter), array)
        records.append(
            {"id": name, "dumps": initializer.dumps(), "parameter": parameter, "array": encode(array.asnumpy())}
        )
    # What of a fused vector goes where: each part filled with its own number.
    for mode, gates, ways in [("lstm", 4, 1), ("gru", 3, 2), ("rnn_relu", 1, 2)]:
        size = fused_size(2, 3, 2, gates, ways)
        cell = mx.rnn.FusedRNNCell(3, 2, mode, bidirectional=ways == 2, prefix="")
        parts = cell.unpack_weights({"parameters": mx.nd.arange(size)})
        records.append(
            {
                "id": f"layout_{mode}",
                "mode": mode,
                "bidirectional": ways == 2,
                "size": size,
                "parts": {
                    name: {"first": float(part.asnumpy().flat[0]), "shape": list(part.shape)}
                    for name, part in parts.items()
                },
            }
        )
    texts = [
        init.Normal(),
        init.Normal(2),
        init.MSRAPrelu(),
        init.MSRAPrelu("in", 0),
        init.Orthogonal(),
        init.Orthogonal(2, "normal"),
        init.Bilinear(),
        init.LSTMBias(),
        init.FusedRNN(None, 3, 2, "gru", True, 2.0),
        init.FusedRNN(init.Constant(2), 3, 2, "lstm"),
    ]
    return records, [text.dumps() for text in texts]


def main():
    out = HERE / "recorded"
    if "--out" in sys.argv:
        out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
    metrics = [record_metric(*case) for case in metric_cases()]
    ids = [record["id"] for record in metrics]
    assert len(ids) == len(set(ids))
    initializers, texts = record_initializers()
    value = {
        "format": "symbind-metrics-1",
        "mxnet": mx.__version__,
        "metrics": metrics,
        "initializers": initializers,
        "initializer_texts": texts,
    }
    size = write_json(out / "metrics.json.gz", value)
    errors = [record["id"] for record in metrics if record.get("error")]
    print(f"metrics: {len(metrics)} cases, {len(errors)} errors, {len(initializers)} initializers, {size} bytes")
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
