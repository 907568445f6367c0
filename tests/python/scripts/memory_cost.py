"""How much memory a training step needs, with and without mirroring, read out of debug_str() as tools for that do."""

import mxnet as mx


def network(mirror, layers=8):
    net = mx.sym.Variable("data")
    for i in range(layers):
        net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=16, name="conv%d" % i)
        with mx.AttrScope(**({"force_mirroring": "True"} if mirror else {})):
            net = mx.sym.BatchNorm(net, name="bn%d" % i)
            net = mx.sym.Activation(net, act_type="relu", name="relu%d" % i)
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=10, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def cost(net, **shapes):
    executor = net.simple_bind(ctx=mx.cpu(), grad_req="write", **shapes)
    return int(executor.debug_str().split("\n")[-3].split()[1])


plain, mirrored = (cost(network(mirror), data=(32, 3, 64, 64)) for mirror in (False, True))
assert 0 < mirrored <= plain, (mirrored, plain)
print("RESULT cheaper %d" % (mirrored <= plain))
remainder = mx.sym.Variable("x") % 3
print("RESULT named %d" % remainder.name.startswith("_modscalar"))
