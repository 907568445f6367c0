"""Statistics of weights, outputs and gradients while training, by a Monitor with a function of our own."""

import logging
import sys

import mxnet as mx
import numpy as np


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


log = Lines()
logging.getLogger().setLevel(logging.INFO)
logging.getLogger().addHandler(log)

rng = np.random.RandomState(8)
label = rng.randint(3, size=120)
data = (rng.normal(size=(3, 6))[label] + rng.normal(scale=0.5, size=(120, 6))).astype(np.float32)
train = mx.io.NDArrayIter(data, label, 20)

net = mx.sym.Variable("data")
net = mx.sym.FullyConnected(net, name="fc1", num_hidden=8)
net = mx.sym.Activation(net, name="relu1", act_type="relu")
net = mx.sym.FullyConnected(net, name="fc2", num_hidden=3)
net = mx.sym.SoftmaxOutput(net, name="softmax")
shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(20, 6))[0]))
params = {n: mx.nd.array(rng.normal(0, 0.3, s)) for n, s in shapes.items() if n.startswith("fc")}


def norm_stat(d):
    return mx.nd.norm(d) / np.sqrt(d.size)


# In fit: every third of six batches, two epochs.
mod = mx.mod.Module(net)
mon = mx.mon.Monitor(3, stat_func=norm_stat, pattern=r".*weight|(fc|relu)\d_output|softmax_output", sort=True)
mod.fit(train, arg_params=params, num_epoch=2, monitor=mon, optimizer_params={"learning_rate": 0.1})
fit_lines = [line for line in log.lines if line.startswith("Batch:")]
seen = sorted({line.split()[2] for line in fit_lines})

# By hand, with the default statistic, the root of the mean of squares.
train.reset()
batch = next(train)
by_hand = mx.mod.Module(net)
by_hand.bind(data_shapes=train.provide_data, label_shapes=train.provide_label)
by_hand.init_params(arg_params=params)
mon = mx.mon.Monitor(1, pattern="fc.*(weight|bias)|fc._output")
by_hand.install_monitor(mon)
mon.tic()
by_hand.forward(batch, is_train=True)
by_hand.backward()
table = {name: float(value.split()[0]) for _, name, value in mon.toc()}

print("\n".join(fit_lines))
print("seen:", seen, "\nby hand:", table)
print("RESULT lines %d" % len(fit_lines))
print("RESULT fc1_output %f" % table["fc1_output"])
print("RESULT fc1_weight %f" % table["fc1_weight"])
print("RESULT last_softmax %f" % float([line for line in fit_lines if " softmax_output " in line][-1].split()[-1]))
wanted = np.sqrt(np.square(data[:20].dot(params["fc1_weight"].asnumpy().T) + params["fc1_bias"].asnumpy()).mean())
if abs(table["fc1_output"] - wanted) > 1e-4:
    sys.exit("fc1_output is %f in the monitor and %f by hand" % (table["fc1_output"], wanted))
for name in ("fc1_output", "relu1_output", "fc2_output", "softmax_output", "fc1_weight", "fc2_weight"):
    if name not in seen:
        sys.exit("%s was not watched" % name)
