"""The oldest interface: FeedForward with fit, predict, score, save and load, on NumPy arrays."""

import logging
import os
import shutil
import sys
import tempfile

import mxnet as mx
import numpy as np
from mxnet.initializer import Initializer
from mxnet.model import FeedForward

logging.getLogger().setLevel(logging.INFO)
rng = np.random.RandomState(15)
np.random.seed(15)
label = rng.randint(4, size=320)
data = (rng.normal(size=(4, 10))[label] + rng.normal(scale=0.6, size=(320, 10))).astype(np.float32)
X, y, X_val, y_val = data[:240], label[:240], data[240:], label[240:]


class FromNumpy(Initializer):
    """Weights from NumPy, whatever the library's own generator would give."""

    def _init_weight(self, name, arr):
        arr[:] = np.random.RandomState(len(name)).normal(0, 0.3, arr.shape)


net = mx.symbol.Variable("data")
net = mx.symbol.FullyConnected(net, name="fc1", num_hidden=16)
net = mx.symbol.Activation(net, name="relu1", act_type="relu")
net = mx.symbol.FullyConnected(net, name="fc2", num_hidden=4)
net = mx.symbol.SoftmaxOutput(net, name="softmax")

train = mx.io.NDArrayIter(X, y, batch_size=40, shuffle=False)
val = mx.io.NDArrayIter(X_val, y_val, batch_size=40)
model = FeedForward(
    ctx=mx.cpu(),
    symbol=net,
    num_epoch=6,
    learning_rate=0.1,
    momentum=0.9,
    wd=0.0001,
    initializer=FromNumpy(),
)
model.fit(X=train, eval_data=val, eval_metric="accuracy", batch_end_callback=mx.callback.Speedometer(40, 3))

prob = model.predict(val)
accuracy = (prob.argmax(axis=1) == y_val).mean()
score = model.score(val)

folder = tempfile.mkdtemp()
prefix = os.path.join(folder, "model")
model.save(prefix)
loaded = FeedForward.load(prefix, 6, ctx=mx.cpu())
again = loaded.predict(X_val)
files = sorted(os.listdir(folder))

# Training goes on where the file ended; arrays instead of an iterator.
more = FeedForward(
    symbol=net,
    ctx=[mx.cpu()],
    num_epoch=8,
    begin_epoch=6,
    numpy_batch_size=40,
    learning_rate=0.05,
    arg_params=loaded.arg_params,
    aux_params=loaded.aux_params,
)
more.fit(mx.io.NDArrayIter(X, y, 40))
shutil.rmtree(folder)

print("RESULT accuracy %f" % accuracy)
print("RESULT first %f" % prob[0].max())
print("RESULT weight %f" % np.abs(model.arg_params["fc1_weight"].asnumpy()).mean())
print("RESULT weight_later %f" % np.abs(more.arg_params["fc1_weight"].asnumpy()).mean())
if not isinstance(prob, np.ndarray) or prob.shape != (80, 4) or abs(score - accuracy) > 1e-6:
    sys.exit("predict gave %s of %s, score %s" % (type(prob), np.shape(prob), score))
if np.abs(prob - again).max() > 1e-5 or files != ["model-0006.params", "model-symbol.json"]:
    sys.exit("the loaded model differs by %g; files %s" % (np.abs(prob - again).max(), files))
if accuracy < 0.9:
    sys.exit("accuracy %f" % accuracy)
