"""A language model over buckets, by cells: an iterator derived from BucketSentenceIter that keeps the order of the
sentences, checkpoints with the weights of each gate, states in another module."""

import logging
import os
import shutil
import tempfile

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(11)
words = "the a cat dog sat ran on mat rug fast <eos>".split()
lines = [[words[rng.randint(len(words))] for _ in range(rng.randint(2, 11))] for _ in range(120)]
sentences, vocab = mx.rnn.encode_sentences(lines, invalid_label=0, start_label=1)


class InOrder(mx.rnn.BucketSentenceIter):
    """The same batches in every epoch."""

    def reset(self):
        self.curr_idx = 0
        self.nddata, self.ndlabel = [], []
        for bucket in self.data:
            label = np.empty_like(bucket)
            label[:, :-1] = bucket[:, 1:]
            label[:, -1] = self.invalid_label
            self.nddata.append(mx.ndarray.array(bucket, dtype=self.dtype))
            self.ndlabel.append(mx.ndarray.array(label, dtype=self.dtype))


class FromOneGenerator(mx.init.Initializer):
    def __init__(self):
        super().__init__()
        self.generator = np.random.RandomState(4)

    def _init_weight(self, name, arr):
        arr[:] = self.generator.normal(0, 0.15, arr.shape)


data = InOrder(sentences, 8, buckets=[4, 7, 10], invalid_label=0)
print("RESULT batches %d" % len(data.idx))
folder = tempfile.mkdtemp()
try:
    for kind, cell in (("lstm", mx.rnn.LSTMCell), ("gru", mx.rnn.GRUCell)):
        stack = mx.rnn.SequentialRNNCell()
        for layer in range(2):
            stack.add(cell(num_hidden=12, prefix="%s_l%d_" % (kind, layer)))

        def sym_gen(seq_len, stack=stack):
            embed = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=len(vocab) + 1, output_dim=8, name="embed")
            stack.reset()
            outputs, _ = stack.unroll(seq_len, inputs=embed, merge_outputs=True)
            pred = mx.sym.Reshape(outputs, shape=(-1, 12))
            pred = mx.sym.FullyConnected(data=pred, num_hidden=len(vocab) + 1, name="pred")
            label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
            return mx.sym.SoftmaxOutput(data=pred, label=label, name="softmax"), ("data",), ("softmax_label",)

        prefix = os.path.join(folder, kind)
        data.reset()
        model = mx.mod.BucketingModule(sym_gen, default_bucket_key=data.default_bucket_key, context=mx.cpu())
        model.fit(
            data,
            eval_metric=mx.metric.Perplexity(0),
            kvstore="device",
            optimizer_params={"learning_rate": 0.01, "momentum": 0.9, "wd": 1e-5},
            initializer=FromOneGenerator(),
            num_epoch=2,
            epoch_end_callback=mx.rnn.do_rnn_checkpoint(stack, prefix, 1),
        )
        print("RESULT %s_perplexity %.6f" % (kind, dict(model.score(data, mx.metric.Perplexity(0)))["perplexity"]))
        _, arg_params, aux_params = mx.rnn.load_rnn_checkpoint(stack, prefix, 2)
        print("RESULT %s_saved %d" % (kind, len(mx.nd.load(prefix + "-0002.params"))))
        again = mx.mod.BucketingModule(sym_gen, data.default_bucket_key)
        again.bind(data.provide_data, data.provide_label, for_training=False)
        again.set_params(arg_params, aux_params)
        print("RESULT %s_loaded %.6f" % (kind, dict(again.score(data, mx.metric.Perplexity(0)))["perplexity"]))
finally:
    shutil.rmtree(folder)
