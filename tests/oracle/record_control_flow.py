"""Records loops and branches: the JSON of networks with foreach, while_loop and cond, and what they compute.

    oracle-env/bin/python record_control_flow.py [--out DIR]

Every function below builds one network and says the shapes of its arguments. The file is recorded/control_flow.json.gz,
which README.md describes.
"""

import os
import pathlib
import sys

os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from record import encode, write_json  # noqa: E402

S = mx.sym


def foreach_sum():
    data, first = S.var("data"), S.var("first")

    def body(x, states):
        total = x + states[0]
        return total, [total]

    outputs, states = S.contrib.foreach(body, data, [first])
    return S.Group([outputs, *states]), {"data": (4, 2, 3), "first": (2, 3)}


def foreach_rnn():
    data, first, outer = S.var("data"), S.var("first"), S.exp(S.var("scale"), name="outer")

    def body(x, states):
        hidden = S.FullyConnected(x, num_hidden=3, name="fc") + S.broadcast_mul(states[0], outer)
        hidden = S.Activation(hidden, act_type="tanh")
        return [hidden, hidden * 2], [hidden]

    outputs, states = S.contrib.foreach(body, data, [first])
    shapes = {"data": (5, 2, 4), "first": (2, 3), "fc_weight": (3, 4), "fc_bias": (3,), "scale": (1, 3)}
    return S.Group([*outputs, *states]), shapes


def foreach_two():
    """Two arrays to loop over, two states, one of which passes through, and no outputs of the loop itself."""
    a, b = S.var("a"), S.var("b")

    def body(x, states):
        return [], [states[1], states[0] * 0.5 + x[0] * x[1]]

    _, states = S.contrib.foreach(body, [a, b], [S.var("s"), S.var("t")])
    return S.Group(list(states)), {"a": (3, 2), "b": (3, 2), "s": (2,), "t": (2,)}


def while_growing():
    """As many steps as there may be: MXNet does not write what is after the last one."""
    weight = S.var("weight")

    def func(i, x):
        following = x * 0.5 + weight
        return [S.broadcast_mul(following, i)], [i + 1, following]

    outputs, last = S.contrib.while_loop(lambda i, x: i < 100, func, [S.var("i"), S.var("x")], max_iterations=4)
    return S.Group([*outputs, *last]), {"i": (1,), "x": (2, 1), "weight": (2, 1)}


def cond_then():
    a, b, w = S.var("a"), S.var("b"), S.exp(S.var("w"), name="outer")
    return S.contrib.cond(S.sum(a) > -100, lambda: a * w + b, lambda: b * 3), {"a": (2, 3), "b": (2, 3), "w": (2, 3)}


def cond_else():
    a, b = S.var("a"), S.var("b")
    outputs = S.contrib.cond(S.sum(a) > 100, lambda: [a * 2, b], lambda: [b * b, a + b])
    return S.Group(outputs), {"a": (2, 3), "b": (2, 3)}


QUIRKS = {"while_growing": "the gradients of x and weight are not those that finite differences give"}
NETWORKS = [foreach_sum, foreach_rnn, foreach_two, while_growing, cond_then, cond_else]


def record(build):
    with mx.name.NameManager():
        net, shapes = build()
    rng = np.random.RandomState(5)
    values = {name: (rng.randint(-64, 65, shape) / 64.0).astype("float32") for name, shape in shapes.items()}
    args = {name: mx.nd.array(value) for name, value in values.items()}
    grads = {name: mx.nd.zeros(value.shape) for name, value in values.items()}
    executor = net.bind(mx.cpu(), args, args_grad=grads)
    outputs = [out.asnumpy() for out in executor.forward(is_train=True)]
    out_grads = [(rng.randint(-64, 65, out.shape) / 64.0).astype("float32") for out in outputs]
    executor.backward([mx.nd.array(each) for each in out_grads])
    quirk = {"quirk": QUIRKS[build.__name__]} if build.__name__ in QUIRKS else {}
    return {
        "id": build.__name__,
        **quirk,
        "tojson": net.tojson(),
        "list_arguments": net.list_arguments(),
        "list_outputs": net.list_outputs(),
        "args": {name: encode(value) for name, value in values.items()},
        "outputs": [encode(out) for out in outputs],
        "out_grads": [encode(each) for each in out_grads],
        "grads": {name: encode(grad.asnumpy()) for name, grad in grads.items()},
    }


def main(argv):
    out = pathlib.Path(argv[argv.index("--out") + 1]) if "--out" in argv else pathlib.Path(__file__).parent / "recorded"
    cases = [record(build) for build in NETWORKS]
    write_json(
        out / "control_flow.json.gz", {"format": "symbind-control-flow-1", "mxnet": mx.__version__, "cases": cases}
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
