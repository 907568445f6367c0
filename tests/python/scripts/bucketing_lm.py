"""A language model over sentences of several lengths: BucketingModule, sym_gen, an iterator with bucket keys."""

import logging
import os
import tempfile

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(31)
buckets = [4, 7, 10]
batch_size, vocabulary, hidden = 8, 20, 16


class SentenceIter(mx.io.DataIter):
    def __init__(self, sentences, default_bucket_key):
        super().__init__(batch_size)
        self.default_bucket_key = default_bucket_key
        self.provide_data = [("data", (batch_size, default_bucket_key)), ("init_h", (batch_size, hidden))]
        self.provide_label = [("softmax_label", (batch_size, default_bucket_key))]
        self.batches = []
        for length in buckets:
            same = [s for s in sentences if len(s) == length]
            for begin in range(0, len(same) - batch_size + 1, batch_size):
                self.batches.append(np.array(same[begin : begin + batch_size], dtype=np.float32))
        order = rng.permutation(len(self.batches))
        self.batches = [self.batches[i] for i in order]
        self.at = 0

    def reset(self):
        self.at = 0

    def next(self):
        if self.at == len(self.batches):
            raise StopIteration
        data = self.batches[self.at]
        self.at += 1
        label = np.concatenate([data[:, 1:], data[:, :1]], axis=1)
        return mx.io.DataBatch(
            [mx.nd.array(data), mx.nd.zeros((batch_size, hidden))],
            [mx.nd.array(label)],
            pad=0,
            bucket_key=data.shape[1],
            provide_data=[("data", data.shape), ("init_h", (batch_size, hidden))],
            provide_label=[("softmax_label", label.shape)],
        )


def sym_gen(seq_len):
    data = mx.sym.Variable("data")
    label = mx.sym.Variable("softmax_label")
    embed = mx.sym.Embedding(data, input_dim=vocabulary, output_dim=12, name="embed")
    steps = mx.sym.SliceChannel(embed, num_outputs=seq_len, axis=1, squeeze_axis=True)
    i2h_weight, i2h_bias = mx.sym.Variable("i2h_weight"), mx.sym.Variable("i2h_bias")
    h2h_weight, h2h_bias = mx.sym.Variable("h2h_weight"), mx.sym.Variable("h2h_bias")
    h = mx.sym.Variable("init_h")
    states = []
    for t in range(seq_len):
        i2h = mx.sym.FullyConnected(steps[t], i2h_weight, i2h_bias, num_hidden=hidden)
        h2h = mx.sym.FullyConnected(h, h2h_weight, h2h_bias, num_hidden=hidden)
        h = mx.sym.Activation(i2h + h2h, act_type="tanh")
        states.append(mx.sym.expand_dims(h, axis=1))
    net = mx.sym.Reshape(mx.sym.Concat(*states, dim=1), shape=(-1, hidden))
    net = mx.sym.FullyConnected(net, num_hidden=vocabulary, name="pred")
    net = mx.sym.SoftmaxOutput(net, mx.sym.Reshape(label, shape=(-1,)), name="softmax")
    return net, ("data", "init_h"), ("softmax_label",)


def make_sentences(count):
    sentences = []
    for _ in range(count):
        word, length = rng.randint(vocabulary), buckets[rng.randint(len(buckets))]
        sentence = [word]
        while len(sentence) < length:
            word = (word * 3 + 1) % vocabulary if rng.rand() < 0.8 else rng.randint(vocabulary)
            sentence.append(word)
        sentences.append(sentence)
    return sentences


class Known(mx.init.Initializer):
    """The same numbers under every library."""

    def _init_weight(self, name, arr):
        arr[:] = np.random.RandomState(len(name)).uniform(-0.3, 0.3, arr.shape)

    _init_default = _init_weight


train, val = SentenceIter(make_sentences(400), 10), SentenceIter(make_sentences(100), 10)
model = mx.mod.BucketingModule(sym_gen, default_bucket_key=train.default_bucket_key, context=mx.cpu())
model.fit(
    train_data=train,
    eval_data=val,
    eval_metric=mx.metric.Perplexity(None),
    optimizer="sgd",
    optimizer_params={"learning_rate": 0.2, "momentum": 0.8, "wd": 0.0001, "rescale_grad": 1.0 / batch_size / 8},
    initializer=Known(),
    num_epoch=3,
    batch_end_callback=mx.callback.Speedometer(batch_size, 20, auto_reset=False),
)
scored = model.score(val, mx.metric.Perplexity(None))[0][1]
with tempfile.TemporaryDirectory() as folder:
    prefix = os.path.join(folder, "lm")
    model.save_checkpoint(prefix, 3)
    files = sorted(os.listdir(folder))
    loaded = mx.mod.BucketingModule.load(prefix, 3, sym_gen, default_bucket_key=10)
    loaded.bind(val.provide_data, val.provide_label, for_training=False)
    again = loaded.score(val, mx.metric.Perplexity(None))[0][1]
print(files)
print("RESULT files %f" % len(files))
print("RESULT perplexity %f" % scored)
print("RESULT loaded %f" % again)
print("RESULT embed %f" % np.abs(model.get_params()[0]["embed_weight"].asnumpy()).sum())
