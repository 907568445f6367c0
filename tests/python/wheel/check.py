"""Run with an installed Symbind, far from the tree: it is loaded from where pip put it, and trains.

usage: check.py TREE        TREE: the folder nothing may come from
"""

import os
import sys

import numpy as np

import symbind as mx
from symbind import _symbind

tree = os.path.realpath(sys.argv[1])


def loaded_libraries():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return {line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line}


for path in [mx.__file__, _symbind.__file__, *(loaded_libraries() if os.path.exists("/proc/self/maps") else ())]:
    assert not os.path.realpath(path).startswith(tree + os.sep), f"{path} is in the tree"
package = os.path.realpath(os.path.dirname(mx.__file__))
# LAPACK is opened by the first factorization.
factor = mx.nd.linalg.potrf(mx.nd.array([[4.0, 2.0], [2.0, 5.0]]))
np.testing.assert_allclose(factor.asnumpy(), [[2, 0], [1, 2]], rtol=1e-6)
if os.path.exists("/proc/self/maps"):
    for path in loaded_libraries():
        if os.path.basename(path).startswith(("libsymbind", "libdnnl", "libscipy_openblas.so")):
            assert os.path.realpath(path).startswith(package + os.sep), f"{path} is not the package's own"

# Points inside and outside of a circle, with a Symbol, simple_bind and sgd_update alone.
mx.random.seed(3)
net = mx.sym.Variable("data")
net = mx.sym.Activation(mx.sym.FullyConnected(net, num_hidden=16, name="fc1"), act_type="relu")
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=2, name="fc2"), name="softmax")
points = np.random.RandomState(0).uniform(-1, 1, (100, 2)).astype("float32")
inside = ((points**2).sum(axis=1) < 0.5).astype("float32")
executor = net.simple_bind(mx.cpu(), data=points.shape)
weights = [name for name in net.list_arguments() if name not in ("data", "softmax_label")]
for name in weights:
    executor.arg_dict[name][:] = mx.nd.random.uniform(-0.5, 0.5, shape=executor.arg_dict[name].shape)
for _ in range(300):
    executor.forward(is_train=True, data=mx.nd.array(points), softmax_label=mx.nd.array(inside))
    executor.backward()
    for name in weights:
        weight = executor.arg_dict[name]
        mx.nd.sgd_update(weight, executor.grad_dict[name], lr=0.5, rescale_grad=0.01, out=weight)
right = (executor.forward()[0].asnumpy().argmax(axis=1) == inside).mean()
assert right > 0.9, f"only {right:.0%} of the points are right"
print(f"   {package}: {right:.0%} of the points are right")
