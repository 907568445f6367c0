#!/usr/bin/env python3
"""Loads files that Symbind wrote with MXNet 1.9.1, and compares the numbers.

    SYMBIND_FILES_FOR_MXNET=DIR build/release/tests/test_files --gtest_filter='FilesForMXNet.*'
    python check_files.py DIR

Needs the environment of record.py (see README.md). Says what was compared; any difference ends it with an error.
"""

import os
import pathlib
import sys

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402


def network(folder):
    symbol, args, aux = mx.model.load_checkpoint(str(folder / "net"), 1)
    answer = mx.nd.load(str(folder / "answer.params"))
    module = mx.mod.Module(symbol)
    module.bind([("data", answer["data"].shape)], [("softmax_label", answer["softmax_label"].shape)], False)
    module.set_params(args, aux)
    module.forward(mx.io.DataBatch([answer["data"]], [answer["softmax_label"]]))
    theirs = module.get_outputs()[0].asnumpy()
    worst = np.abs(theirs - answer["output"].asnumpy()).max()
    assert worst < 1e-5, worst
    assert symbol.tojson() == (folder / "net-symbol.json").read_text()
    print("network: %d parameters, outputs agree to %.1e" % (len(args) + len(aux), worst))


def types(folder):
    arrays = mx.nd.load(str(folder / "types.params"))
    for name, array in arrays.items():
        assert np.dtype(array.dtype).name == name and array.shape == (2, 3)
    print("arrays of types: %s" % ", ".join(sorted(arrays)))


def flat(state):
    if state is None:
        return []
    if isinstance(state, tuple | list):
        return [array for item in state for array in flat(item)]
    return [state]


def compare(folder, name, states):
    expected = mx.nd.load(str(folder / (name + ".arrays")))
    arrays = [array for state in states.values() for array in flat(state)]
    assert len(arrays) == len(expected)
    for ours, theirs in zip(expected, arrays):
        assert ours.dtype == theirs.dtype and np.array_equal(ours.asnumpy(), theirs.asnumpy())
    print("%s: %d arrays under %s" % (name, len(arrays), list(states)))


def updater(folder, name, optimizer, **arguments):
    held = mx.optimizer.get_updater(mx.optimizer.create(optimizer, **arguments))
    held.set_states((folder / (name + ".states")).read_bytes())
    compare(folder, name, held.states)
    return held


def module(folder, name, kvstore, optimizer, **arguments):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    held = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)])
    held.bind([("data", (4, 3))], [("softmax_label", (4,))])
    held.init_params(mx.init.One())
    held.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=arguments)
    held.load_optimizer_states(str(folder / (name + ".states")))
    held.forward_backward(mx.io.DataBatch([mx.nd.ones((4, 3))], [mx.nd.zeros((4,))]))
    held.update()
    weight = held.get_params()[0]["fc_weight"].asnumpy()
    assert np.isfinite(weight).all() and (weight != 1).all()
    print("%s: loaded by Module.load_optimizer_states, which then updates" % name)


def main():
    folder = pathlib.Path(sys.argv[1])
    network(folder)
    types(folder)
    updater(folder, "sgd_by_name", "sgd", momentum=0.9)
    updater(folder, "adam_two_devices", "adam")
    updater(folder, "multi_precision", "sgd", momentum=0.9, multi_precision=True)
    module(folder, "sgd_by_name", "local", "sgd", learning_rate=0.1, momentum=0.9)
    module(folder, "adam_two_devices", None, "adam", learning_rate=0.1)

    dumped = updater(folder, "sgd_dumped", "adam")
    optimizer = dumped.optimizer
    assert type(optimizer).__name__ == "SGD" and optimizer.momentum == 0.9
    assert optimizer.num_update == 7 and optimizer._index_update_count == {0: 7}
    assert optimizer.lr_mult == {"fc_weight": 0.5} and optimizer.idx2name == {0: "fc_weight"}
    before = dumped.states[0].asnumpy()
    weight, gradient = mx.nd.ones((2, 3)), mx.nd.ones((2, 3))
    dumped(0, gradient, weight)
    rate = 0.1 * 0.5 * 0.5  # after update 7 the schedule halves it, and so does the multiplier
    expected = 1 + 0.9 * before - rate
    assert np.allclose(weight.asnumpy(), expected, atol=1e-6), (weight.asnumpy(), expected)
    assert optimizer.num_update == 8
    print("sgd_dumped: the optimizer goes on with its schedule, multipliers and counts")


if __name__ == "__main__":
    main()
