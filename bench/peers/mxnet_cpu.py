"""MXNet 1.9.1 on the CPU: one JSON row per case. The wheel wants numpy below 1.24."""

import os

import timing

BATCH = 64
CLASSES = 10


def mlp(sym):
    x = sym.Variable("data")
    x = sym.Activation(sym.FullyConnected(x, num_hidden=128, name="fc1"), act_type="relu")
    x = sym.Activation(sym.FullyConnected(x, num_hidden=64, name="fc2"), act_type="relu")
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=CLASSES, name="fc3"), name="softmax")


def lenet(sym):
    x = sym.Variable("data")
    for i, num_filter in enumerate((20, 50), start=1):
        x = sym.Convolution(x, kernel=(5, 5), num_filter=num_filter, name=f"conv{i}")
        x = sym.Pooling(sym.Activation(x, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
    x = sym.Activation(sym.FullyConnected(sym.Flatten(x), num_hidden=500, name="fc1"), act_type="tanh")
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=CLASSES, name="fc2"), name="softmax")


CASES = {"mlp-train": (mlp, (784,)), "lenet-train": (lenet, (1, 28, 28))}


def training_step(mx, case):
    """A function that runs one whole step: forward, backward, SGD with momentum and weight decay."""
    make_network, sample_shape = CASES[case]
    data_shape = (BATCH, *sample_shape)
    module = mx.mod.Module(make_network(mx.sym), context=mx.cpu())
    module.bind([("data", data_shape)], [("softmax_label", (BATCH,))])
    module.init_params(mx.init.Xavier(magnitude=2.0))
    module.init_optimizer(
        kvstore=None, optimizer="sgd", optimizer_params={"learning_rate": 0.01, "momentum": 0.9, "wd": 1e-4}
    )
    label = mx.nd.floor(mx.nd.random.uniform(0, CLASSES, shape=(BATCH,)))
    batch = mx.io.DataBatch([mx.nd.random.normal(shape=data_shape)], [label])

    def step():
        module.forward_backward(batch)
        module.update()
        mx.nd.waitall()

    return step


def main():
    arguments = timing.parse_arguments(__doc__, CASES)
    # Both are read when the library loads. Its default fusing gives wrong results for some networks.
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
    import mxnet

    mxnet.random.seed(0)
    for case in arguments.case:
        timing.report(case, BATCH, timing.median_ms(training_step(mxnet, case), arguments.seconds))


if __name__ == "__main__":
    main()
