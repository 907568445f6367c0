"""MXNet 1.9.1 on the CPU, or whatever package AS_MXNET names as a substitute: one JSON row per case. The wheel wants
numpy below 1.24."""

import importlib
import os
import sys

import timing


def mlp(sym):
    x = sym.Variable("data")
    x = sym.Activation(sym.FullyConnected(x, num_hidden=128, name="fc1"), act_type="relu")
    x = sym.Activation(sym.FullyConnected(x, num_hidden=64, name="fc2"), act_type="relu")
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=10, name="fc3"), name="softmax")


def lenet(sym):
    x = sym.Variable("data")
    for i, num_filter in enumerate((20, 50), start=1):
        x = sym.Convolution(x, kernel=(5, 5), num_filter=num_filter, name=f"conv{i}")
        x = sym.Pooling(sym.Activation(x, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
    x = sym.Activation(sym.FullyConnected(sym.Flatten(x), num_hidden=500, name="fc1"), act_type="tanh")
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=10, name="fc2"), name="softmax")


def lstm_layer(sym, steps, hidden, name):
    """LSTM cells over the steps of a sequence, from operators: gates in the order in, forget, transform, out."""
    parameters = {key: sym.Variable(name + key) for key in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")}

    def affine(x, kind):
        weight, bias = parameters[kind + "_weight"], parameters[kind + "_bias"]
        return sym.FullyConnected(x, weight=weight, bias=bias, num_hidden=4 * hidden)

    h, c = sym.zeros(shape=(0, hidden)), sym.zeros(shape=(0, hidden))
    outputs = []
    for x in steps:
        parts = sym.SliceChannel(affine(x, "i2h") + affine(h, "h2h"), num_outputs=4)
        in_gate = sym.Activation(parts[0], act_type="sigmoid")
        forget_gate = sym.Activation(parts[1], act_type="sigmoid")
        transform = sym.Activation(parts[2], act_type="tanh")
        out_gate = sym.Activation(parts[3], act_type="sigmoid")
        c = sym.elemwise_add(sym.elemwise_mul(forget_gate, c), sym.elemwise_mul(in_gate, transform))
        h = sym.elemwise_mul(out_gate, sym.Activation(c, act_type="tanh"))
        outputs.append(h)
    return outputs


LENGTH, WORDS, HIDDEN = 35, 10000, 200  # of the language models


def language_model(sym, layers):
    """The next word at each step; `layers` turns the embedded words into rows."""
    embedded = sym.Embedding(sym.Variable("data"), input_dim=WORDS, output_dim=HIDDEN, name="embed")
    x = sym.FullyConnected(sym.Reshape(layers(embedded), shape=(-1, HIDDEN)), num_hidden=WORDS, name="pred")
    return sym.SoftmaxOutput(x, sym.Reshape(sym.Variable("softmax_label"), shape=(-1,)), name="softmax")


def unrolled_lstm(sym):
    def layers(embedded):
        slices = sym.SliceChannel(embedded, num_outputs=LENGTH, axis=1, squeeze_axis=True)
        steps = [slices[i] for i in range(LENGTH)]
        for name in ("lstm0_", "lstm1_"):
            steps = lstm_layer(sym, steps, HIDDEN, name)
        return sym.Concat(*[sym.expand_dims(step, axis=1) for step in steps], dim=1)

    return language_model(sym, layers)


def fused_lstm(sym):
    def layers(embedded):
        cell = sys.modules["mxnet"].rnn.FusedRNNCell(HIDDEN, num_layers=2, mode="lstm", prefix="lstm_")
        return cell.unroll(LENGTH, embedded, layout="NTC", merge_outputs=True)[0]

    return language_model(sym, layers)


def resnet50(sym):
    """The pre-activation network, as examples/support/networks/resnet.h builds it."""

    def norm_relu(x, name, activation):
        x = sym.BatchNorm(x, fix_gamma=False, eps=2e-5, momentum=0.9, name=name)
        return sym.Activation(x, act_type="relu", name=activation)

    def conv(x, filters, size, stride, name):
        pad = (size // 2, size // 2)
        kernel, step = (size, size), (stride, stride)
        return sym.Convolution(
            x, num_filter=filters, kernel=kernel, stride=step, pad=pad, no_bias=True, workspace=256, name=name
        )

    def unit(x, filters, stride, same_shape, name):
        first = norm_relu(x, name + "bn1", name + "relu1")
        y = conv(first, filters // 4, 1, 1, name + "conv1")
        y = conv(norm_relu(y, name + "bn2", name + "relu2"), filters // 4, 3, stride, name + "conv2")
        y = conv(norm_relu(y, name + "bn3", name + "relu3"), filters, 1, 1, name + "conv3")
        return y + (x if same_shape else conv(first, filters, 1, stride, name + "sc"))

    x = sym.BatchNorm(sym.Variable("data"), fix_gamma=True, eps=2e-5, momentum=0.9, name="bn_data")
    x = norm_relu(conv(x, 64, 7, 2, "conv0"), "bn0", "relu0")
    x = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", name="pool0")
    for stage, (units, filters) in enumerate(zip((3, 4, 6, 3), (256, 512, 1024, 2048)), start=1):
        for number in range(1, units + 1):
            stride = 2 if stage > 1 and number == 1 else 1
            x = unit(x, filters, stride, number > 1, f"stage{stage}_unit{number}_")
    x = sym.Pooling(norm_relu(x, "bn1", "relu1"), kernel=(7, 7), global_pool=True, pool_type="avg", name="pool1")
    x = sym.FullyConnected(sym.Flatten(x), num_hidden=1000, name="fc1")
    return sym.SoftmaxOutput(x, name="softmax")


def inception_resnet(sym):
    """The network of bench/train_step.cc: as published, but for widths that are no multiple of a vector."""

    def conv(x, filters, kernel, pad=(0, 0), stride=(1, 1)):
        x = sym.Convolution(x, num_filter=filters, kernel=kernel, pad=pad, stride=stride, no_bias=True)
        return sym.Activation(sym.BatchNorm(x, fix_gamma=False, eps=2e-5), act_type="relu")

    def halved(x):
        return sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max")

    def residual(x, towers, filters, scale, relu=True):
        up = sym.Convolution(sym.Concat(*towers, dim=1), num_filter=filters, kernel=(1, 1))
        x = x + up * scale
        return sym.Activation(x, act_type="relu") if relu else x

    x = conv(sym.Variable("data"), 32, (3, 3), stride=(2, 2))
    x = halved(conv(conv(x, 32, (3, 3)), 64, (3, 3), (1, 1)))
    x = halved(conv(conv(x, 80, (1, 1)), 192, (3, 3)))
    mean = sym.Pooling(x, kernel=(3, 3), stride=(1, 1), pad=(1, 1), pool_type="avg")
    towers = [conv(x, 96, (1, 1)), conv(conv(x, 48, (1, 1)), 64, (5, 5), (2, 2))]
    towers += [conv(conv(conv(x, 64, (1, 1)), 96, (3, 3), (1, 1)), 96, (3, 3), (1, 1)), conv(mean, 64, (1, 1))]
    x = sym.Concat(*towers, dim=1)
    for _ in range(10):
        towers = [conv(x, 32, (1, 1)), conv(conv(x, 32, (1, 1)), 32, (3, 3), (1, 1))]
        towers += [conv(conv(conv(x, 32, (1, 1)), 48, (3, 3), (1, 1)), 64, (3, 3), (1, 1))]
        x = residual(x, towers, 320, 0.17)
    deep = conv(conv(conv(x, 256, (1, 1)), 256, (3, 3), (1, 1)), 384, (3, 3), stride=(2, 2))
    x = sym.Concat(conv(x, 450, (3, 3), stride=(2, 2)), deep, halved(x), dim=1)
    for _ in range(20):
        deep = conv(conv(conv(x, 129, (1, 1)), 160, (1, 7), (0, 3)), 192, (7, 1), (3, 0))
        x = residual(x, [conv(x, 192, (1, 1)), deep], 1154, 0.1)
    narrow = conv(x, 256, (1, 1))
    deep = conv(conv(narrow, 288, (3, 3), (1, 1)), 320, (3, 3), stride=(2, 2))
    wide = [conv(narrow, filters, (3, 3), stride=(2, 2)) for filters in (384, 288)]
    x = sym.Concat(*wide, deep, halved(x), dim=1)
    for number in range(10):
        deep = conv(conv(conv(x, 192, (1, 1)), 224, (1, 3), (0, 1)), 256, (3, 1), (1, 0))
        x = residual(x, [conv(x, 192, (1, 1)), deep], 2146, 0.2, number < 9)
    x = sym.Pooling(conv(x, 1536, (1, 1)), kernel=(1, 1), global_pool=True, pool_type="avg")
    return sym.SoftmaxOutput(sym.FullyConnected(sym.Flatten(x), num_hidden=1000, name="fc1"), name="softmax")


def text_cnn(sym):
    """Sentences of 56 words of 300 numbers each; kernels over three to five whole words."""
    data, answers = sym.Variable("data"), []
    for length in (3, 4, 5):
        x = sym.Convolution(data, kernel=(length, 300), num_filter=100)
        x = sym.Activation(x, act_type="relu")
        answers.append(sym.Pooling(x, kernel=(56 - length + 1, 1), pool_type="max"))
    x = sym.Dropout(sym.Flatten(sym.Concat(*answers, dim=1)), p=0.5)
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=2, name="fc1"), name="softmax")


# network, shape of a batch, classes
CASES = {
    "mlp-train": (mlp, (64, 784), 10),
    "lenet-train": (lenet, (64, 1, 28, 28), 10),
    "lstm-train": (fused_lstm, (32, 35), 10000),
    "lstm-train-unrolled": (unrolled_lstm, (32, 35), 10000),
    "resnet50-train": (resnet50, (32, 3, 224, 224), 1000),
    "resnet50-infer": (resnet50, (32, 3, 224, 224), 1000),
    "resnet50-infer-b1": (resnet50, (1, 3, 224, 224), 1000),
    "inception-resnet-v2-infer": (inception_resnet, (2, 3, 299, 299), 1000),
    "text-cnn-train": (text_cnn, (50, 1, 56, 300), 2),
}
OF_WORDS = {"lstm-train", "lstm-train-unrolled"}  # data and label are numbers of words, one label for each


def training_step(mx, case):
    """A function that runs one whole step: forward, backward, SGD with momentum and weight decay."""
    make_network, data_shape, classes = CASES[case]
    module = mx.mod.Module(make_network(mx.sym), context=mx.cpu())
    of_words = case in OF_WORDS
    label_shape = data_shape if of_words else data_shape[:1]
    module.bind([("data", data_shape)], [("softmax_label", label_shape)])
    module.init_params(mx.init.Uniform(0.1) if of_words else mx.init.Xavier(magnitude=2.0))
    module.init_optimizer(
        kvstore=None, optimizer="sgd", optimizer_params={"learning_rate": 0.01, "momentum": 0.9, "wd": 1e-4}
    )

    def whole_numbers(shape):
        return mx.nd.floor(mx.nd.random.uniform(0, classes, shape=shape))

    data = whole_numbers(data_shape) if of_words else mx.nd.random.normal(shape=data_shape)
    batch = mx.io.DataBatch([data], [whole_numbers(label_shape)])

    def step():
        module.forward_backward(batch)
        module.update()
        mx.nd.waitall()

    return step


def prediction(mx, case):
    """A function that computes the outputs of a batch."""
    make_network, data_shape, _ = CASES[case]
    module = mx.mod.Module(make_network(mx.sym), context=mx.cpu())
    module.bind([("data", data_shape)], for_training=False)
    module.init_params(mx.init.Xavier(magnitude=2.0))
    batch = mx.io.DataBatch([mx.nd.random.normal(shape=data_shape)], [])

    def step():
        module.forward(batch, is_train=False)
        module.get_outputs()[0].asnumpy()

    return step


def main():
    arguments = timing.parse_arguments(__doc__, CASES)
    # Both are read when the library loads. Its default fusing gives wrong results for some networks.
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
    if stand_in := os.environ.get("AS_MXNET"):
        sys.modules["mxnet"] = importlib.import_module(stand_in)
    import mxnet

    mxnet.random.seed(0)
    for case in arguments.case:
        make = prediction if "-infer" in case else training_step
        step_ms = timing.median_ms(make(mxnet, case), arguments.seconds)
        timing.report(case, CASES[case][1][0], step_ms)


if __name__ == "__main__":
    main()
